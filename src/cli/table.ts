import { escapeControls, escapeControlsInLines } from '../controls.ts'

/** Rows below a header, in aligned columns. */
export const table = (header: readonly string[], rows: readonly (readonly string[])[]): string =>
  columns([header, ...rows])

/** Rows in aligned columns. */
export function columns(texts: readonly (readonly string[])[]): string {
  const rows = texts.map((row) => row.map(escapeControls))
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? ''))))
  const pad = (text: string, column: number) => text + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(text))
  return rows.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('')
}

/** A value as indented JSON. */
export const toJson = (value: unknown): string => `${escapeControlsInLines(JSON.stringify(value, null, 2))}\n`
