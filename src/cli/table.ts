/** Rows with their header as columns that a person can read. */
export const table = (header: readonly string[], rows: readonly (readonly string[])[]): string =>
  columns([header, ...rows])

/** The same without a header. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? ''))))
  const pad = (text: string, column: number) => text + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(text))
  return rows.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('')
}
