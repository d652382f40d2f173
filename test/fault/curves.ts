/** The measured values of one quantity over time. */
export interface Curve {
  readonly name: string
  readonly unit: string
  readonly values: readonly number[]
}

const WIDTH = 760
const LEFT = 60
const PANEL_HEIGHT = 130
const PANEL_STEP = 190
const TOP = 60
const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .small { font-size: 12px; fill: #59636e }
  .axis { stroke: #d1d9e0; fill: none }
  .curve { stroke: #1a7f37; fill: none; stroke-width: 1.5 }`

/** The curves as a table of comma-separated values. */
export function toCsv(seconds: readonly number[], curves: readonly Curve[]): string {
  const head = ['seconds', ...curves.map(({ name, unit }) => (unit === '' ? name : `${name}, ${unit}`))]
  const rows = seconds.map((second, index) => [second, ...curves.map(({ values }) => values[index] ?? '')])
  return [head.map((cell) => JSON.stringify(cell)), ...rows].map((row) => `${row.join(',')}\n`).join('')
}

/** A picture with a panel for each curve, one below the other, over the same time. */
export function toSvg(title: string, seconds: readonly number[], curves: readonly Curve[]): string {
  const height = TOP + curves.length * PANEL_STEP
  const panels = curves.map((curve, index) => drawPanel(curve, seconds, TOP + index * PANEL_STEP))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${title}</title>
<style>${STYLE}
</style>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
<text x="10" y="24">${title}</text>
${panels.join('\n')}
</svg>
`
}

function drawPanel({ name, unit, values }: Curve, seconds: readonly number[], top: number): string {
  const last = seconds.at(-1) ?? 1
  const max = Math.max(1, ...values)
  const bottom = top + PANEL_HEIGHT
  const x = (second: number) => (LEFT + (second / last) * (WIDTH - LEFT - 20)).toFixed(1)
  const y = (value: number) => (bottom - (value / max) * (PANEL_HEIGHT - 20)).toFixed(1)
  const points = values.map((value, index) => `${x(seconds[index] ?? 0)},${y(value)}`)
  return [
    `<text x="${LEFT}" y="${top}">${name}</text>`,
    `<path class="axis" d="M${LEFT} ${top + 8}V${bottom}H${WIDTH - 20}"/>`,
    `<polyline class="curve" points="${points.join(' ')}"/>`,
    `<text class="small" x="${LEFT - 6}" y="${y(max)}" text-anchor="end">${max.toFixed(0)} ${unit}</text>`,
    `<text class="small" x="${LEFT - 6}" y="${bottom}" text-anchor="end">0</text>`,
    `<text class="small" x="${WIDTH - 20}" y="${bottom + 16}" text-anchor="end">${(last / 60).toFixed(0)} min</text>`,
  ].join('\n')
}
