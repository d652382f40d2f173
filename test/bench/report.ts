import type { ResultRow } from './results.ts'
import { median, type Spread } from './statistics.ts'

/** The text that is printed for a row. */
export function reportRow({ name, title, claims, figures, notes, failure }: ResultRow): string {
  const figureCells = figures.map((figure) => [
    `  ${figure.name}`,
    `${amount(figure.median)} ${figure.unit}`,
    spread(figure),
    figure.serverBusy === undefined ? '' : `server busy ${Math.round(median(figure.serverBusy) * 100)} %`,
  ])
  const claimCells = claims.map((claim) => [
    `  ${claim.name}`,
    `${amount(claim.median)} ${claim.unit}`,
    spread(claim),
    `goal ${claim.goal}, floor ${claim.floor}: ${claim.verdict}`,
  ])
  return [
    `${name}: ${title}`,
    ...(failure === undefined ? [] : [`  FAILED: ${failure}`]),
    ...align([...figureCells, ...claimCells]),
    ...notes.map((note) => `  ${note}`),
    '',
  ].join('\n')
}

const spread = ({ min, max }: Spread): string => `(${amount(min)} – ${amount(max)})`

/** Three digits, or all digits before the point. */
export function amount(value: number): string {
  if (Math.abs(value) >= 100) return value.toFixed(0)
  return value.toPrecision(3)
}

/** Pads the cells of lines, so that columns are aligned. */
export function align(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
