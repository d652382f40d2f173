// Tested in test/cli/plant-lines.test.ts.
/** A field of plants, as a column of CSV. */
export interface PlantField {
  readonly name: string
  readonly isOptional: boolean
}

/**
 * Takes the next line of CSV. Returns the JSON of the plant that ends with it, or why the plant is refused, or `undefined` while
 * a quoted field goes on in the next line, or `empty` if all fields are.
 */
export type CsvReader = (line: string) => { readonly json: string } | { readonly problem: string } | 'empty' | undefined

/** A line of a file, without its last line feed. Several lines of CSV are one if they are one plant. */
export interface FileLine {
  /** Its number in the file, or that of the first of several. */
  readonly number: number
  readonly text: string
  readonly bytes: number
  readonly isUtf8: boolean
}

/** What the first lines of a file have said. */
export interface FileForm {
  /** The header of CSV, with a BOM. */
  header: string
  /** Why the file cannot be read to its end. */
  problem: string
}

/** What the page at `/` loads once somebody needs it: the exports of src/formats/web-file.ts. */
export interface WebFile {
  /** The lines of a file, each with its plant or why it is refused. */
  readWebFile(
    file: Blob,
    fields: readonly PlantField[],
  ): {
    readonly form: FileForm
    readonly plants: AsyncIterable<{ readonly line: FileLine; readonly plant: PlantTexts | string }>
  }
  toCsv(plants: readonly PlantTexts[], names: readonly string[], delimiter: string): string
}

/** The texts of a plant by the names of its fields. Its id is text, because a number of JavaScript rounds what is above 2^53. */
export type PlantTexts = Readonly<Record<string, string>> & { readonly id: string; readonly name: string }

/** A line that is a plant. */
export type PlantLine<Line> = Line & {
  /** The plant, if the line is CSV. */
  readonly json?: string
  /** Why the line is refused, if that is known. */
  readonly problem?: string
}

/** What is said of a line that is not even JSON. */
export const NO_JSON = 'it is no JSON in UTF-8, or is nested too deep.'

/** What other files look like by one of their lines in Latin-1, and what helps. */
const OTHER_FILES: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/^.\x8b/s, 'gzip: decompress it'],
  [/^(?:\xff\xfe|\xfe\xff|.?\0)/s, 'UTF-16: convert it to UTF-8'],
  [/^\s*\[/, 'a JSON array: write each plant in a line of its own'],
  [/^\s*\{\s*$/, 'pretty-printed JSON: write each plant in one line'],
  [/[^\x80-\xff][\x80-\xff][^\x80-\xff]/, 'Latin-1: convert it to UTF-8'],
]

/** What to say instead of a refusal if a file of another kind has such a line in Latin-1. */
export function describeFile(line: string): string | undefined {
  const [, advice] = OTHER_FILES.find(([pattern]) => pattern.test(line)) ?? []
  return advice && `the file looks like ${advice}.`
}

/** How a plant or an array begins in JSON. No header of CSV does. */
const JSON_START = /^\s*[{[]/
/** What Excel takes, and other programs write, before the header of CSV. */
const SEPARATOR = /^"?sep=[,;\t]"?\r?$/i

interface Rules {
  /** Begins to read CSV if the first line, which is no JSON, is its header, or says why it is refused. */
  readonly openCsv: (header: string) => CsvReader | string | undefined
  readonly maxBytes: number
  /** What is said of a longer line. */
  readonly tooLong: string
}

/** The plants in lines of JSON or CSV, without blank lines. A line that is too long is the last, and so is a wrong header. */
export async function* plantLines<Line extends FileLine>(
  lines: AsyncIterable<Line>,
  { openCsv, maxBytes, tooLong }: Rules,
): AsyncGenerator<PlantLine<Line>> {
  let csv: CsvReader | undefined
  let isHeader = true
  /** The lines of a plant of CSV so far, as one. */
  let begun: Line | undefined
  for await (const line of lines) {
    const isSkipped = line.text.trim() === '' || (isHeader && SEPARATOR.test(line.text))
    if (begun === undefined && isSkipped && line.bytes <= maxBytes) continue
    begun = begun ? joined(begun, line) : line
    if (begun.bytes > maxBytes) return yield { ...begun, problem: tooLong }
    if (isHeader) {
      const opened = JSON_START.test(line.text) ? undefined : openCsv(line.text)
      if (typeof opened === 'string') return yield { ...begun, problem: opened }
      csv = opened
      isHeader = false
      begun = csv ? undefined : begun
    }
    if (begun === undefined) continue
    const found = csv ? csv(line.text) : {}
    if (found === undefined) continue
    if (found !== 'empty')
      yield { ...begun, ...(csv && !begun.isUtf8 ? { problem: 'it is not UTF-8: save the file as UTF-8.' } : found) }
    begun = undefined
  }
  if (begun) yield { ...begun, problem: 'a quoted field in it does not end.' }
}

const joined = <Line extends FileLine>(line: Line, next: Line): Line => ({
  ...line,
  text: `${line.text}\n${next.text}`,
  bytes: line.bytes + 1 + next.bytes,
  isUtf8: line.isUtf8 && next.isUtf8,
})
