import { isUtf8 } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { escapeControlsInLines } from '../controls.ts'
import {
  describeFields,
  isOptional,
  NEW_PLANT_FIELDS,
  type OwnedPlant,
  plantJson,
  toPlant,
  valuesOf,
} from '../domain/plant.ts'
import { OTHER_NAME_RULE, PROVIDER_USER_PREFIX, USER_NAME, USER_NAME_RULE } from '../domain/token.ts'
import { AppError } from '../error.ts'
import { openCsv, renderCsv } from '../formats/plant-csv.ts'
import { type CsvReader, describeFile, NO_JSON, plantLines } from '../formats/plant-file.ts'
import { parseJson, toNewPlant } from '../formats/plant-json.ts'

const LINE_FEED = 0x0a

/** Renders plants as lines of JSON (https://jsonlines.org). Each line is a `NewPlant` with the name of its user. */
export const renderPlantLines = (plants: readonly OwnedPlant[]): string =>
  escapeControlsInLines(plants.map(renderPlantLine).join(''))

const renderPlantLine = ({ user, id, plant }: OwnedPlant): string =>
  `{"user":${JSON.stringify(user)},${plantJson(plant, id).slice(1)}\n`

export const CSV_HEADER = renderCsv([[...NEW_PLANT_FIELDS]])

/** Renders plants as lines of CSV (RFC 4180), without their user. */
export const renderPlantCsv = (plants: readonly OwnedPlant[]): string =>
  renderCsv(plants.map(({ id, plant }) => [id, ...valuesOf(plant)]))

const CSV_FIELDS = NEW_PLANT_FIELDS.map((name) => ({ name, isOptional: isOptional(name) }))

/**
 * The plants of a stream, or why a line is refused. The first reason tells what another kind of file looks like. A line
 * without a user is one of `user`. Calls `onBatch` with the bytes that were read whenever the lines of a chunk are done.
 */
export async function* readPlants(
  stream: AsyncIterable<Uint8Array>,
  { user, maxLine }: { readonly user: string | undefined; readonly maxLine: number },
  onBatch: (bytes: number) => void,
) {
  /** Whether the form of the file is known, or was told. */
  let isKnown = false
  const lines = plantLines(numbered(stream, maxLine, onBatch), {
    maxBytes: maxLine,
    tooLong: `it is longer than ${maxLine} bytes: --max-line allows more.`,
    openCsv(header): CsvReader | string | undefined {
      const csv = openCsv(header, CSV_FIELDS)
      isKnown = csv !== undefined
      return csv && user === undefined ? 'CSV names no user: --user says whose plants these are.' : csv
    },
  })
  for await (const { number, line, json, problem } of lines) {
    const plant = problem ?? parsePlantLine(json === undefined ? line : Buffer.from(json), user)
    const kind = typeof plant === 'string' && !isKnown ? describeFile(Buffer.from(line).toString('latin1')) : undefined
    yield { number, plant: kind ?? plant }
    isKnown ||= typeof plant === 'string'
  }
}

/** The lines of a stream as they were read, but a BOM. */
async function* numbered(stream: AsyncIterable<Uint8Array>, maxBytes: number, onBatch: (bytes: number) => void) {
  let [number, bytes] = [0, 0]
  for await (const batch of readLines(stream, maxBytes)) {
    for (const read of batch) {
      bytes += read.length + 1
      const line = number++ === 0 ? withoutBom(read) : read
      const text = Buffer.from(line).toString()
      yield { number, line, text, bytes: line.length, isUtf8: isUtf8(line) }
    }
    onBatch(bytes)
  }
}

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

const withoutBom = (line: Uint8Array) => line.subarray(line.subarray(0, 3).toHex() === 'efbbbf' ? 3 : 0)

/**
 * Reads a line as strictly as the server reads the body of a create. Returns the reason if it refuses the line. A line without a
 * user belongs to `defaultUser`; with a `defaultUser`, a line of another user is refused.
 */
function parsePlantLine(line: Uint8Array, defaultUser?: string): OwnedPlant | string {
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
    if (error.kind === 'body_not_json') return NO_JSON
    return error.message || `it must be a JSON object with ${describeFields(['user'])}.`
  }
}
