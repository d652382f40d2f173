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

/** How to print the items of a list: as JSON, or as text. */
interface ListFormat<Item, Row> {
  readonly toRow: (item: Item) => Row
  readonly toText: (rows: readonly Row[], isFirst: boolean) => string
  readonly json: true | undefined
}

/** Prints a list page by page, so that the memory never has all of it. */
export async function printPages<Item, Row>(
  io: Pick<Io, 'print'>,
  pages: AsyncIterable<readonly Item[]>,
  { toRow, toText, json }: ListFormat<Item, Row>,
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

/** Makes a table of pages of rows. A cell without a value has the text of `emptyCell`. A wide cell widens its column from its page on. */
export function tableOfPages(header: readonly string[], emptyCell: (name: string) => string) {
  const widths: number[] = []
  return (rows: readonly Readonly<Record<string, Cell | null>>[], isFirst: boolean): string => {
    const cells = rows.map((row) => Object.entries(row).map(([name, value]) => value ?? emptyCell(name)))
    return table(isFirst ? [header, ...cells] : cells, widths)
  }
}

/** The rows of a list from `after` on, page by page. `keyOf` returns the key after which the next page begins. */
export async function* readPages<Row, Key>(
  read: (range: RowRange<Key>) => Promise<readonly Row[]>,
  keyOf: (row: Row) => Key,
  { after, limit = Number.POSITIVE_INFINITY }: RowRange<Key>,
  pageRows = PAGE_ROWS,
): AsyncGenerator<readonly Row[]> {
  const next = { after, limit: pageRows }
  for (let left = limit; left > 0; left -= next.limit) {
    next.limit = Math.min(left, pageRows)
    const page = await read(next)
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < next.limit) return
    next.after = keyOf(last)
  }
}

/** Prints a text for scripts in a line. On a terminal, its control characters are JSON escapes. */
export const printLine = (io: Pick<Io, 'print' | 'printsToTerminal'>, text: string): Promise<void> =>
  io.print(`${io.printsToTerminal ? escapeControls(text) : text}\n`)

/** A value as indented JSON. */
export const toJson = (value: unknown): string => `${escapeControlsInLines(JSON.stringify(value, null, 2))}\n`

/** A time in ISO 8601, in UTC. A time that no `Date` can show, which another program has stored, stays a number of milliseconds. */
export function toIso(ms: number | undefined): string | null {
  if (ms === undefined) return null
  return Math.abs(ms) > TIME_MAX_MS ? `${ms} ms` : new Date(ms).toISOString()
}

/** A number and its noun: `1 token`, `3 tokens`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
