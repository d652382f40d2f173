import { escapeControls, escapeControlsInLines } from '../controls.ts'

/** Rows in aligned columns. */
export function table(cells: readonly (readonly (string | number)[])[]): string {
  const rows = cells.map((row) => row.map((cell) => escapeControls(String(cell))))
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? ''))))
  const pad = (text: string, column: number) => text + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(text))
  return rows.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('')
}

/** A value as indented JSON. */
export const toJson = (value: unknown): string => `${escapeControlsInLines(JSON.stringify(value, null, 2))}\n`

/** A time in ISO 8601, in UTC. */
export const toIso = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())

/** A number and its noun: `1 token`, `3 tokens`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
