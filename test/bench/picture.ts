import { ratios } from './claims.ts'
import type { ResultRow, Results } from './results.ts'
import { spreadOf } from './statistics.ts'

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

/** The panels of the picture. Each compares the figures of a row with the figure of the first contestant. */
const PANELS = [
  {
    row: 'list',
    title: 'List of 20 plants, one user, asked for again and again',
    reference: 'bare Bun.serve, same bytes',
  },
  { row: 'create', title: 'Create, on disk before the answer', reference: 'bare Bun.serve, echo' },
] as const

const NAMES: Readonly<Record<string, string>> = {
  plantstore: 'Plant Store',
  elysia: 'Elysia, bun:sqlite',
  hono: 'Hono, bun:sqlite',
  fastify: 'Fastify, better-sqlite3',
}

/** GitHub shows the picture in an `img`, which applies media queries and loads nothing. */
const STYLE = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .panel { font-size: 14px; font-weight: 600 }
  .small { font-size: 12px; fill: #59636e }
  .ours { font-weight: 600 }
  .bar { fill: #8c959f }
  .bar.reference { fill: #d1d9e0 }
  .bar.ours { fill: #1a7f37 }
  .axis { stroke: #d1d9e0 }
  .whisker { stroke: #1f2328; stroke-width: 1.5; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .small { fill: #9198a1 }
    .bar { fill: #656c76 }
    .bar.reference { fill: #3d444d }
    .bar.ours { fill: #2ea043 }
    .axis { stroke: #3d444d }
    .whisker { stroke: #f0f6fc }
  }`

interface Bar {
  readonly name: string
  readonly className: string
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Draws lists and creates of all contestants against the bare server. Returns `undefined` if one of the rows is missing. */
export function drawPicture({ rows, rounds }: Pick<Results, 'rows' | 'rounds'>): string | undefined {
  const panels = PANELS.map(({ row, title, reference }) => {
    const measured = rows.find(({ name }) => name === row)
    return { title, bars: measured === undefined ? [] : barsOf(measured, reference) }
  })
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
<title id="title">Requests a second, compared with a bare server</title>
<desc id="summary">${summary}.</desc>
<style>${STYLE}
</style>
<text class="title" x="0" y="20">Requests a second, compared with a bare server</text>
<text class="small" x="0" y="41">One core for the server, one for the load, 64 connections. Longer is better.</text>
${drawn.join('\n')}
<text class="small" x="0" y="${height - 12}">Bars: median of ${rounds} rounds, of the ratio to the bare server in the same round. Lines: lowest to highest.</text>
</svg>
`
}

function barsOf({ figures }: ResultRow, referenceName: string): Bar[] {
  const [reference] = figures
  if (reference === undefined) return []
  return figures.map(({ name, rounds }, index) => ({
    name: index === 0 ? referenceName : (NAMES[name] ?? name),
    className: classOf(name, index),
    ...spreadOf(ratios(rounds, reference.rounds)),
  }))
}

function classOf(name: string, index: number): string {
  if (index === 0) return 'reference'
  return name === 'plantstore' ? 'ours' : 'other'
}

function drawPanel(title: string, bars: readonly Bar[], top: number): string {
  const scale = BAR_WIDTH / Math.max(...bars.map(({ max }) => max))
  const first = top + PANEL_HEAD - BAR_HEIGHT + CAP
  const lines = bars.map((bar, index) => drawBar(bar, first + index * BAR_STEP, scale))
  const axis = `<path class="axis" d="M${LABEL_WIDTH} ${first - 6}V${first + bars.length * BAR_STEP - 4}"/>`
  return [`<text class="panel" x="0" y="${top + 8}">${title}</text>`, ...lines, axis].join('\n')
}

function drawBar({ name, className, median, min, max }: Bar, top: number, scale: number): string {
  const middle = top + BAR_HEIGHT / 2
  const at = (ratio: number) => (LABEL_WIDTH + ratio * scale).toFixed(1)
  const whisker = `M${at(min)} ${middle}H${at(max)}M${at(min)} ${middle - CAP}v${2 * CAP}M${at(max)} ${middle - CAP}v${2 * CAP}`
  const baseline = middle + CAP + 0.5
  return [
    `<text class="${className}" x="${LABEL_WIDTH - 10}" y="${baseline}" text-anchor="end">${name}</text>`,
    `<rect class="bar ${className}" x="${LABEL_WIDTH}" y="${top}" width="${(median * scale).toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>`,
    ...(className === 'reference' ? [] : [`<path class="whisker" d="${whisker}"/>`]),
    `<text class="${className}" x="${(LABEL_WIDTH + Math.max(median, max) * scale + 10).toFixed(1)}" y="${baseline}">${times(median)}</text>`,
  ].join('\n')
}

const say = ({ name, median }: Bar): string => `${name} ${times(median)}`

const times = (ratio: number): string => `${ratio.toFixed(ratio < 0.1 ? 3 : 2)} ×`
