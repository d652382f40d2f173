import { setImmediate as nextTurn } from 'node:timers/promises'
import { escapeControlsInLines } from '../controls.ts'
import { AppError } from '../domain/error.ts'
import { parseJson, toNewPlant } from '../domain/new-plant.ts'
import { describeFields, type OwnedPlant, plantJson, toPlant } from '../domain/plant.ts'
import { OTHER_NAME_RULE, PROVIDER_USER_PREFIX, USER_NAME, USER_NAME_RULE } from '../domain/token.ts'

/** The largest line of an import: the maximum of `--max-body`, and room for the name of a user. */
export const LINE_MAX_BYTES = 1024 ** 3 + 1024
const LINE_FEED = 0x0a

/** Renders plants as lines of JSON (https://jsonlines.org). Each line is a `NewPlant` with the name of its user. */
export const renderPlantLines = (plants: readonly OwnedPlant[]): string =>
  escapeControlsInLines(plants.map(renderPlantLine).join(''))

const renderPlantLine = ({ user, id, plant }: OwnedPlant): string =>
  `{"user":${JSON.stringify(user)},${plantJson(plant, id).slice(1)}\n`

/**
 * The lines of a stream, one batch for each chunk. Bytes after the last line feed are a line, too. Throws `file_unusable` as soon
 * as a line is longer than `maxBytes`, so that no line fills the memory.
 */
export async function* readLines(stream: AsyncIterable<Uint8Array>, maxBytes: number) {
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
      if (bytes > maxBytes) throw new AppError('file_unusable', { message: `A line is longer than ${maxBytes} bytes.` })
      start += part.length + 1
      parts.push(part)
      if (end === -1) break
      lines.push(parts.length === 1 ? part : Buffer.concat(parts))
      parts = []
      bytes = 0
    }
    if (lines.length > 0) yield lines
    // Signals need a turn of the event loop, and a device like /dev/zero is read without one.
    await nextTurn()
  }
  if (bytes > 0) yield [Buffer.concat(parts)]
}

/**
 * Reads a line as strictly as the server reads the body of a create. Returns the reason if it refuses the line. A line without a
 * user belongs to `defaultUser`; with a `defaultUser`, a line of another user is refused.
 */
export function parsePlantLine(line: Uint8Array, defaultUser: string | undefined): OwnedPlant | string {
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
    if (error.kind === 'body_not_json') return 'it is no JSON in UTF-8 without a BOM, or is nested too deep.'
    return error.message || `it must be a JSON object with ${describeFields(['user'])}.`
  }
}
