import { until } from './until.ts'

/** The value of each series, by its name and labels as they are written. */
export type Series = Readonly<Record<string, number>>

/** Reads metrics in Prometheus' text format. Throws at a malformed line. */
function readMetrics(text: string): Series {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    lines.map((line) => {
      const [, series = '', value] = /^([a-z0-9_]+(?:\{(?:[a-z_]+="[^"\\]*",?)*\})?) (\S+)$/.exec(line) ?? []
      // The mean of nothing is not a number, which is a value.
      if (Number.isNaN(Number(value)) && !/^nan$/i.test(value ?? '')) throw new Error(`this is no metric: ${line}`)
      return [series, Number(value)]
    }),
  )
}

/** The series of one metric by their labels, or only those that are not 0. */
export const seriesOf = (all: Series, name: string, { isNonZero = false } = {}): Series =>
  Object.fromEntries(
    Object.entries(all)
      .filter(([series, value]) => series.split('{')[0] === name && (value !== 0 || !isNonZero))
      .map(([series, value]) => [series.slice(name.length + 1, -1), value]),
  )

/** The address of the metrics of a server that was started with --metrics-listen, from its log. */
export function metricsUrlOf(server: { stdout(): string }): string {
  const [, address = ''] = /"metricsAddress":"([^"]+)"/.exec(server.stdout()) ?? []
  return address
}

/** Asks a server for its metrics. */
export async function scrape(server: { stdout(): string }): Promise<Series> {
  const answer = await fetch(`${metricsUrlOf(server)}/metrics`)
  if (answer.status !== 200) throw new Error(`the metrics were answered with ${answer.status}`)
  return readMetrics(await answer.text())
}

/** Asks until the metrics meet a condition. Returns these metrics. */
export const scrapeUntil = (server: { stdout(): string }, isWanted: (all: Series) => boolean): Promise<Series> =>
  until(`the metrics meet ${isWanted}`, async (see) => {
    const all = see(await scrape(server))
    return isWanted(all) && all
  })
