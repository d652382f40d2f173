// Tested in test/http/page/page-upload.test.ts.
import { fieldRule } from '../domain/field-rule.ts'
import { parseInt64JsonNumber } from '../domain/int64.ts'
import { openCsv, renderCsv } from './plant-csv.ts'
import {
  describeFile,
  type FileForm,
  type FileLine,
  NO_JSON,
  type PlantLine,
  type PlantTexts,
  plantLines,
  type WebFile,
} from './plant-file.ts'

/** The longest line, as for `import`. */
const LINE_MAX = 385 * 1024
const TOO_LONG = `it is longer than ${LINE_MAX} bytes, so nothing behind it was read.`

export const readWebFile: WebFile['readWebFile'] = (file, fields) => {
  const form: FileForm = { header: '', problem: '' }
  const open = (header: string) => {
    const reader = openCsv(header, fields)
    if (typeof reader === 'function') form.header = `\ufeff${header}\n`
    return reader
  }
  async function* read() {
    let isFirst = true
    for await (const line of plantLines(linesOf(file, form), {
      maxBytes: LINE_MAX,
      tooLong: TOO_LONG,
      openCsv: open,
    })) {
      const plant = line.problem ?? toPlant(line.json ?? line.text)
      yield { line, plant: typeof plant === 'string' && isFirst ? (kindOf(line) ?? plant) : plant }
      isFirst &&= typeof plant !== 'string'
    }
  }

  /** The plant in a text of JSON, or why it is refused. */
  function toPlant(json: string): PlantTexts | string {
    let found: Record<string, unknown>
    try {
      // `JSON.parse` would round a large id.
      found = Object(JSON.parse(json.replace(ID, '"id":{"is":"$1"}')))
    } catch {
      return NO_JSON
    }
    const texts: Record<string, string> = {}
    for (const { name, isOptional } of fields) {
      const value = found[name]
      if (value === undefined && isOptional) continue
      const text = name === 'id' ? parseInt64JsonNumber(String(Object(value).is))?.toString() : value
      if (typeof text !== 'string' || !text.isWellFormed() || text.includes('\0')) return fieldRule(name, isOptional)
      texts[name] = text
    }
    // The fields that a plant must have are there.
    return texts as PlantTexts
  }
  return { form, plants: read() }
}

/** A number that is an id, as JSON has it. Within a name a quote follows a backslash, so no name looks like an id. */
const ID = /"id"\s*:\s*(-?\d[\d.eE+-]*)/g

/** What a file without lines of plants looks like. */
const kindOf = ({ text, json, problem = TOO_LONG }: PlantLine<FileLine>): string | undefined =>
  json === undefined && problem === TOO_LONG ? describeFile(text.replace(/\P{ASCII}/gu, '?')) : undefined

/** The lines of a file. It is read part by part, so that it can be of any length. */
async function* linesOf(file: Blob, form: FileForm): AsyncGenerator<FileLine> {
  let [number, rest] = [0, '']
  const toLine = (text: string) => ({ number: ++number, text, bytes: text.length, isUtf8: true })
  const reader = file
    .stream()
    .pipeThrough(new TextDecoderStream('utf-8', { fatal: true }))
    .getReader()
  const read = () =>
    reader.read().catch((error) => {
      // Else the file was changed or deleted meanwhile.
      const isWrong = error instanceof TypeError
      form.problem = isWrong ? 'The file is not UTF-8: save it as UTF-8.' : 'The file cannot be read: choose it again.'
      return { done: true as const }
    })
  for (let part = await read(); !part.done; part = await read()) {
    const lines = (rest + part.value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield toLine(line)
    if (rest.length > LINE_MAX) break
  }
  if (rest !== '') yield toLine(rest)
}

export const toCsv: WebFile['toCsv'] = (plants, names, delimiter) =>
  renderCsv(
    plants.map((plant) => names.map((name) => plant[name] ?? null)),
    delimiter,
  )
