// Tested in test/cli/plant-lines.test.ts.
import { parse, unparse } from 'papaparse'
import type { CsvReader, PlantField } from './plant-file.ts'

const INTEGER = /^(?:0|-?[1-9]\d*)$/

/** What spreadsheets of different countries write between fields. */
const DELIMITERS = [',', ';', '\t']

/** What the first plant looks like in a file whose header is missing. */
const PLANT = /^[\p{L}\w ."'-]+[,;\t]/u

/**
 * Begins to read CSV (RFC 4180) whose header names the columns, in any letter case. Returns why it refuses the columns, or
 * `undefined` if the line does not look like CSV. The script of the page has this file, too.
 */
export function openCsv(header: string, fields: readonly PlantField[]): CsvReader | string | undefined {
  const fieldOf = (word: string) => fields.find(({ name }) => name.toLowerCase() === word.toLowerCase())
  const bareFieldOf = (word: string) => fieldOf(word.replaceAll('"', '').trim())
  const [best] = DELIMITERS.map((delimiter) => {
    const words = split(header.replace(/\r$/, ''), delimiter).fields
    const bare = words.map(bareFieldOf)
    return { delimiter, words, bare, known: bare.filter(Boolean).length }
  }).sort((one, other) => other.known - one.known)
  const advice = `begin the file with the line ${fields.map(({ name }) => name).join()}.`
  if (!best?.known) return PLANT.test(header) ? `it is CSV without its header: ${advice}` : undefined
  const { delimiter, words, bare } = best
  const missing = fields.find((field) => !field.isOptional && !bare.includes(field))
  if (missing) return `the column \`${missing.name}\` is missing: ${advice}`
  const wrong = words.find((word, at) => fieldOf(word) === undefined || bare.indexOf(bare[at]) < at)
  if (wrong === undefined) return readRows(delimiter, bare)
  if (!fieldOf(wrong) && bareFieldOf(wrong)) return `the column \`${wrong}\` has blanks around it: leave them out.`
  return `the column \`${wrong}\` is no field of a plant, or is there twice: leave it out.`
}

function readRows(delimiter: string, columns: readonly (PlantField | undefined)[]): CsvReader {
  const toMember = (text: string, at: number) => {
    const { name, isOptional } = columns[at] ?? {}
    if (text === '' && isOptional) return []
    return `"${name}":${name === 'id' && text !== '' ? text : JSON.stringify(text)}`
  }
  const idAt = columns.findIndex((column) => column?.name === 'id')
  const toPlant = (texts: readonly string[]) => {
    if (texts.every((text) => text === '')) return 'empty'
    if (texts.length !== columns.length)
      return { problem: `it has ${texts.length} fields, and the header has ${columns.length}.` }
    const id = texts[idAt]
    if (id && !INTEGER.test(id)) return { problem: 'an id is written in digits alone, like 7 or -7.' }
    return { json: `{${texts.flatMap(toMember).join()}}` }
  }
  /** The lines of a plant whose quoted field goes on. */
  const open: string[] = []
  const goOn = (line: string) => void open.push(line)
  return (line) => {
    if (open.length > 0 && !line.includes('"')) return goOn(line)
    const end = line.replace(/\r$/, '')
    // Whether a quoted field ends does not depend on its beginning, so its lines are not parsed again with each line.
    const read = split(open.length > 0 ? `"${end}` : end, delimiter)
    if (read.errors.length > 0 && read.errors.every(({ code }) => code === 'MissingQuotes')) return goOn(line)
    const text = [...open.splice(0), end].join('\n')
    const { fields } = text === end ? read : split(text, delimiter)
    if (read.errors.length > 0 || hasBlanksBeforeQuote(text, fields, delimiter))
      return { problem: 'a field with a quote needs quotes around it, and each quote in it twice.' }
    return toPlant(fields)
  }
}

/** Whether blanks stand before the quote of a field, as in `1, "Ro,se"`. Papa Parse would cut it at the delimiter in it. */
function hasBlanksBeforeQuote(text: string, fields: readonly string[], delimiter: string): boolean {
  if (!text.includes('"')) return false
  let at = 0
  for (const field of fields) {
    const isQuoted = text[at] === '"'
    if (!isQuoted && /^\s+"/.test(field)) return true
    // Each quote in a quoted field is there twice. Blanks may follow the last one.
    const length = isQuoted ? 1 + field.length + field.split('"').length : field.length
    at = text.indexOf(delimiter, at + length) + 1
  }
  return false
}

/** The fields of a line, and what is wrong with their quotes. Most lines have none, and Papa Parse takes 7 µs for one line. */
function split(text: string, delimiter: string) {
  if (!text.includes('"')) return { fields: text.split(delimiter), errors: [] }
  // It drops a BOM at the beginning of a text, so a delimiter is there.
  const { data, errors } = parse<string[]>(delimiter + text, { delimiter, newline: '\n' })
  return { fields: data[0]?.slice(1) ?? [], errors }
}

/** Renders rows as lines of CSV. `null` is empty. */
export const renderCsv = (rows: (string | bigint | null)[][], delimiter = ','): string =>
  rows.length === 0 ? '' : `${unparse(rows, { newline: '\n', delimiter })}\n`
