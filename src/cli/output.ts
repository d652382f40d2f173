// Tested in test/cli/transcripts/streams.txt.
import { escapeControls, escapeControlsInLines } from '../controls.ts'
import { PAGE_ROWS, type RowRange } from '../domain/store.ts'
import { TIME_MAX_MS } from '../domain/token.ts'
import type { Io } from './io.ts'

type Cell = string | number

/** Rows in aligned columns. The columns get at least these widths, and the widths become those of the columns. */
export function table(cells: readonly (readonly Cell[])[], widths: number[] = []): string {
  const rows = cells.map((row) => row.map((cell) => escapeControls(String(cell))))
  for (const row of rows) {
    for (const [column, text] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, Bun.stringWidth(text))
    }
  }
  const pad = (text: string, column: number) => text + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(text))
  return rows.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('')
}

/** Prints a list as JSON or as text, page by page, so that the memory never has all of it. */
export async function printPages<Item, Row>(
  io: Pick<Io, 'print'>,
  pages: AsyncIterable<readonly Item[]>,
  toRow: (item: Item) => Row,
  toText: (rows: readonly Row[], isFirst: boolean) => string,
  json: true | undefined,
): Promise<void> {
  let isFirst = true
  for await (const page of pages) {
    const rows = page.map(toRow)
    if (!json) await io.print(toText(rows, isFirst))
    // The text of a page without its brackets.
    else if (rows.length > 0) await io.print((isFirst ? '[' : ',') + toJson(rows).slice('['.length, -'\n]\n'.length))
    isFirst &&= rows.length === 0
  }
  if (json) await io.print(isFirst ? '[]\n' : '\n]\n')
}

/** Makes a table of pages of rows. `emptyCell` gives the text of a missing value. A wide cell widens its column from there on. */
export function tableOfPages(header: readonly string[], emptyCell: (name: string) => string) {
  const widths: number[] = []
  return (rows: readonly Readonly<Record<string, Cell | null>>[], isFirst: boolean): string => {
    const cells = rows.map((row) => Object.entries(row).map(([name, value]) => value ?? emptyCell(name)))
    return table(isFirst ? [header, ...cells] : cells, widths)
  }
}

/** The rows of a list from `after` on, page by page. `keyOf` returns the key after which the next page begins. */
export async function* readPages<Row, Key, Filter>(
  read: (range: RowRange<Key> & Filter) => Promise<readonly Row[]>,
  keyOf: (row: Row) => Key,
  range: RowRange<Key> & Filter,
  pageRows = PAGE_ROWS,
): AsyncGenerator<readonly Row[]> {
  let { after, limit: left = Number.POSITIVE_INFINITY } = range
  while (left > 0) {
    const limit = Math.min(left, pageRows)
    const page = await read({ ...range, after, limit })
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < limit) return
    after = keyOf(last)
    left -= limit
  }
}

/** Prints a text for scripts in a line. On a terminal, its control characters are JSON escapes. */
export const printLine = (io: Pick<Io, 'print' | 'printsToTerminal'>, text: string): Promise<void> =>
  io.print(`${io.printsToTerminal ? escapeControls(text) : text}\n`)

export const toJson = (value: unknown): string => `${escapeControlsInLines(JSON.stringify(value, null, 2))}\n`

/** A time in ISO 8601, in UTC. A time of another program that no `Date` can show stays a number of milliseconds. */
export function toIso(ms: number | undefined): string | null {
  if (ms === undefined) return null
  return Math.abs(ms) > TIME_MAX_MS ? `${ms} ms` : new Date(ms).toISOString()
}

/** A number and its noun: `1 token`, `3 tokens`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
