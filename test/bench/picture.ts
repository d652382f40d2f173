import type { ResultRow, Results } from './results.ts'
import { ratios, spreadOf } from './statistics.ts'

const WIDTH = 760
const LABEL_WIDTH = 210
const VALUE_WIDTH = 110
const BAR_WIDTH = WIDTH - LABEL_WIDTH - VALUE_WIDTH
const BAR_HEIGHT = 18
const BAR_STEP = 28
const PANEL_HEAD = 40
const PANEL_GAP = 18
const TOP = 62
const BOTTOM = 26
const CAP = 4

/** The panels of the picture. Each compares the figures of a row with the figure of the service. */
const PANELS = [
  { row: 'list', title: 'List of 20 plants, one user, 64 connections' },
  { row: 'create', title: 'Create, on disk before the answer, 64 connections' },
  { row: 'create-one', title: 'Create, on disk before the answer, 1 connection' },
] as const

const OURS = 'plantstore'
const NAMES: Readonly<Record<string, string>> = {
  [OURS]: 'Plant Store',
  axum: 'Rust: axum, rusqlite',
  go: 'Go: net/http, go-sqlite3',
  elysia: 'Bun: Elysia, bun:sqlite',
}

/** GitHub shows the picture in an `img`, which applies media queries and loads nothing. */
const STYLE = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .panel { font-size: 14px; font-weight: 600 }
  .small { font-size: 12px; fill: #59636e }
  .ours { font-weight: 600 }
  .bar { fill: #8c959f }
  .bar.ours { fill: #1a7f37 }
  .axis { stroke: #d1d9e0 }
  .whisker { stroke: #1f2328; stroke-width: 1.5; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .small { fill: #9198a1 }
    .bar { fill: #656c76 }
    .bar.ours { fill: #2ea043 }
    .axis { stroke: #3d444d }
    .whisker { stroke: #f0f6fc }
  }`

interface Bar {
  readonly name: string
  readonly isOurs: boolean
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Draws lists and creates of the service and its peers. Returns `undefined` if one of the rows is missing. */
export function drawPicture({ rows, rounds }: Pick<Results, 'rows' | 'rounds'>): string | undefined {
  const panels = PANELS.map(({ row, title }) => ({ title, bars: barsOf(rows.find(({ name }) => name === row)) }))
  if (panels.some(({ bars }) => bars.length === 0)) return undefined

  let top = TOP
  const drawn = panels.map(({ title, bars }) => {
    const panel = drawPanel(title, bars, top)
    top += PANEL_HEAD + bars.length * BAR_STEP + PANEL_GAP
    return panel
  })
  const height = top - PANEL_GAP + BOTTOM
  const summary = panels.map(({ title, bars }) => `${title}: ${bars.map(say).join(', ')}`).join('. ')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title summary">
<title id="title">Requests a second, compared with the Plant Store</title>
<desc id="summary">${summary}.</desc>
<style>${STYLE}
</style>
<text class="title" x="0" y="20">Requests a second, compared with the Plant Store</text>
<text class="small" x="0" y="41">One core for the server, one for the load. Longer is better.</text>
${drawn.join('\n')}
<text class="small" x="0" y="${height - 12}">Bars: median of ${rounds} rounds, of the ratio to the Plant Store in the same round. Lines: lowest to highest.</text>
</svg>
`
}

function barsOf(row: ResultRow | undefined): Bar[] {
  const ours = row?.figures.find(({ name }) => name === OURS)
  if (row === undefined || ours === undefined) return []
  return row.figures.map(({ name, rounds }) => ({
    name: NAMES[name] ?? name,
    isOurs: name === OURS,
    ...spreadOf(ratios(rounds, ours.rounds)),
  }))
}

function drawPanel(title: string, bars: readonly Bar[], top: number): string {
  const scale = BAR_WIDTH / Math.max(...bars.map(({ max }) => max))
  const first = top + PANEL_HEAD - BAR_HEIGHT + CAP
  const lines = bars.map((bar, index) => drawBar(bar, first + index * BAR_STEP, scale))
  const axis = `<path class="axis" d="M${LABEL_WIDTH} ${first - 6}V${first + bars.length * BAR_STEP - 4}"/>`
  return [`<text class="panel" x="0" y="${top + 8}">${title}</text>`, ...lines, axis].join('\n')
}

function drawBar({ name, isOurs, median, min, max }: Bar, top: number, scale: number): string {
  const className = isOurs ? 'ours' : 'other'
  const middle = top + BAR_HEIGHT / 2
  const at = (ratio: number) => (LABEL_WIDTH + ratio * scale).toFixed(1)
  const whisker = `M${at(min)} ${middle}H${at(max)}M${at(min)} ${middle - CAP}v${2 * CAP}M${at(max)} ${middle - CAP}v${2 * CAP}`
  const baseline = middle + CAP + 0.5
  return [
    `<text class="${className}" x="${LABEL_WIDTH - 10}" y="${baseline}" text-anchor="end">${name}</text>`,
    `<rect class="bar ${className}" x="${LABEL_WIDTH}" y="${top}" width="${(median * scale).toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>`,
    ...(isOurs ? [] : [`<path class="whisker" d="${whisker}"/>`]),
    `<text class="${className}" x="${(LABEL_WIDTH + Math.max(median, max) * scale + 10).toFixed(1)}" y="${baseline}">${times(median)}</text>`,
  ].join('\n')
}

const say = ({ name, median }: Bar): string => `${name} ${times(median)}`

const times = (ratio: number): string => `${ratio.toFixed(ratio < 0.1 ? 3 : 2)} ×`
