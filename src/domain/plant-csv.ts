// Tested in test/cli/plant-lines.test.ts.
import { parse, unparse } from 'papaparse'
import type { CsvReader, PlantField } from './plant-file.ts'

const INTEGER = /^(?:0|-?[1-9]\d*)$/

/**
 * Begins to read CSV (RFC 4180) whose header names the columns, with commas or semicolons. Returns why it refuses the columns, or
 * `undefined` if the line does not name all fields that a plant must have. The script of the page has this file, too.
 */
export function openCsv(header: string, fields: readonly PlantField[]): CsvReader | string | undefined {
  const required = fields.filter(({ isOptional }) => !isOptional)
  const found = [',', ';']
    .map((delimiter) => ({ delimiter, columns: split(header.replace(/\r$/, ''), delimiter).fields }))
    .find(({ columns }) => required.every(({ name }) => columns.includes(name)))
  if (found === undefined) return undefined
  const { delimiter, columns } = found
  const wrong = columns.find((name, at) => columns.indexOf(name) < at || fields.every((field) => field.name !== name))
  if (wrong !== undefined) return `the column \`${wrong}\` is no field of a plant, or is there twice: leave it out.`

  const optional = new Set(fields.flatMap(({ name, isOptional }) => (isOptional ? [name] : [])))
  const toMember = (text: string, at: number) => {
    const name = columns[at] ?? ''
    if (text === '' && optional.has(name)) return []
    return `"${name}":${name === 'id' && INTEGER.test(text) ? text : JSON.stringify(text)}`
  }
  /** The lines of a plant whose quoted field goes on. */
  const open: string[] = []
  const goOn = (line: string) => void open.push(line)
  return (line) => {
    if (open.length > 0 && !line.includes('"')) return goOn(line)
    const text = line.replace(/\r$/, '')
    // Whether a quoted field ends does not depend on its beginning, so its lines are not parsed again with each line.
    const read = split(open.length > 0 ? `"${text}` : text, delimiter)
    if (read.errors.length > 0 && read.errors.every(({ code }) => code === 'MissingQuotes')) return goOn(line)
    const lines = open.splice(0)
    if (read.errors.length > 0)
      return { problem: 'a field with a quote needs quotes around it, and each quote in it twice.' }
    const { fields: texts } = lines.length > 0 ? split([...lines, text].join('\n'), delimiter) : read
    if (texts.length !== columns.length)
      return { problem: `it has ${texts.length} fields, and the first line has ${columns.length}.` }
    return { json: `{${texts.flatMap(toMember).join()}}` }
  }
}

/** The fields of a line, and what is wrong with their quotes. Most lines have none, and Papa Parse takes 7 µs for one line. */
function split(text: string, delimiter: string) {
  if (!text.includes('"')) return { fields: text.split(delimiter), errors: [] }
  // It drops a BOM at the beginning of a text, so a delimiter is there.
  const { data, errors } = parse<string[]>(delimiter + text, { delimiter, newline: '\n' })
  return { fields: data[0]?.slice(1) ?? [], errors }
}

/** Renders rows as lines of CSV. `null` is empty. */
export const renderCsv = (rows: (string | bigint | null)[][]): string =>
  rows.length === 0 ? '' : `${unparse(rows, { newline: '\n' })}\n`
