import { setImmediate as nextTurn } from 'node:timers/promises'
import { escapeControlsInLines } from '../controls.ts'
import { AppError } from '../domain/error.ts'
import { parseJson, toNewPlant } from '../domain/new-plant.ts'
import { describeFields, type OwnedPlant, plantJson, toPlant } from '../domain/plant.ts'
import { OTHER_NAME_RULE, PROVIDER_USER_PREFIX, USER_NAME, USER_NAME_RULE } from '../domain/token.ts'

const LINE_FEED = 0x0a

/** What other files look like by one of their lines in Latin-1, and what helps. */
const OTHER_FILES: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/^.\x8b/s, 'gzip: decompress it'],
  [/^(?:\xff\xfe|\xfe\xff|.?\0)/s, 'UTF-16: convert it to UTF-8'],
  [/^\s*\[/, 'a JSON array: write each plant in a line of its own'],
  [/^\s*\{\s*$/, 'pretty-printed JSON: write each plant in one line'],
  [/^[\w "-]+[,;\t]/, 'CSV: write each plant as a JSON object'],
  [/[^\x80-\xff][\x80-\xff][^\x80-\xff]/, 'Latin-1: convert it to UTF-8'],
]

/** Renders plants as lines of JSON (https://jsonlines.org). Each line is a `NewPlant` with the name of its user. */
export const renderPlantLines = (plants: readonly OwnedPlant[]): string =>
  escapeControlsInLines(plants.map(renderPlantLine).join(''))

const renderPlantLine = ({ user, id, plant }: OwnedPlant): string =>
  `{"user":${JSON.stringify(user)},${plantJson(plant, id).slice(1)}\n`

/**
 * The lines of a stream, one batch for each chunk. Bytes after the last line feed are a line, too. A line of more than
 * `maxBytes` is the last one and lacks its end, so that no line fills the memory.
 */
export async function* readLines(stream: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array[]> {
  /** The beginning of a line that the chunks have not ended yet. */
  let parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream) {
    const lines: Uint8Array[] = []
    let start = 0
    while (start < chunk.length) {
      const end = chunk.indexOf(LINE_FEED, start)
      const part = chunk.subarray(start, end === -1 ? chunk.length : end)
      bytes += part.length
      start += part.length + 1
      parts.push(part)
      if (end === -1 && bytes <= maxBytes) break
      lines.push(parts.length === 1 ? part : Buffer.concat(parts))
      if (bytes > maxBytes) return yield lines
      parts = []
      bytes = 0
    }
    if (lines.length > 0) yield lines
    // Signals need a turn of the event loop, and a device like /dev/zero is read without one.
    await nextTurn()
  }
  if (bytes > 0) yield [Buffer.concat(parts)]
}

/** The line without a BOM. */
export const withoutBom = (line: Uint8Array) => line.subarray(line.subarray(0, 3).toHex() === 'efbbbf' ? 3 : 0)

/** Whether a line has only white space, as for the page. */
export const isBlank = (line: Uint8Array): boolean => Buffer.from(line).toString().trim() === ''

/** The kind of file that has such a line, as a sentence behind another one, or nothing. */
export function describeFile(line: Uint8Array): string {
  const [, advice] = OTHER_FILES.find(([pattern]) => pattern.test(Buffer.from(line).toString('latin1'))) ?? []
  return advice ? ` The file looks like ${advice}.` : ''
}

/**
 * Reads a line as strictly as the server reads the body of a create. Returns the reason if it refuses the line. A line without a
 * user belongs to `defaultUser`; with a `defaultUser`, a line of another user is refused.
 */
export function parsePlantLine(line: Uint8Array, maxBytes: number, defaultUser?: string): OwnedPlant | string {
  if (line.length > maxBytes) return `it is longer than ${maxBytes} bytes: --max-line allows more.`
  try {
    const plant = toNewPlant(parseJson(line))
    const user = ('user' in plant ? plant.user : undefined) ?? defaultUser
    if (user === undefined) return '`user` is missing: every line has one, or --user says whose plants these are.'
    if (typeof user !== 'string' || !USER_NAME.test(user)) return `\`user\` must be ${USER_NAME_RULE}.`
    if (user.startsWith(PROVIDER_USER_PREFIX)) return `\`user\` must be ${OTHER_NAME_RULE}.`
    if (defaultUser !== undefined && user !== defaultUser) return `this is a plant of ${user}, not of ${defaultUser}.`
    return { user, id: plant.id, plant: toPlant(plant) }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (error.kind === 'body_not_json') return 'it is no JSON in UTF-8, or is nested too deep.'
    return error.message || `it must be a JSON object with ${describeFields(['user'])}.`
  }
}
