import { CONNECTIONS, type Load, measureRate, type Rate } from './load/wrk.ts'
import type { Figure } from './results.ts'
import type { Bench } from './rows/row.ts'
import type { Server } from './servers.ts'
import { ratios } from './statistics.ts'

/** The runs of wrk in a round: warm-up and measurement. */
const RUNS_PER_ROUND = 2

/** Something that is measured once in each round. */
interface Contestant<T> {
  readonly name: string
  measure(): Promise<T>
}

/** The measurements of a contestant, by its name, one for each round. */
type Measured<T> = (name: string) => readonly T[]

/** A server under a load. */
export interface LoadedServer {
  readonly name: string
  readonly server: Server
  readonly load: Load
  /** If each request of the load creates or deletes a plant: counts the plants of the server's database. */
  readonly count?: () => number | Promise<number>
}

/** The rates of some servers. */
export interface Rates {
  readonly figures: readonly Figure[]
  readonly measured: Measured<Rate>
  /** The ratio of two servers in each round. */
  ratio(name: string, reference: string): number[]
}

/**
 * Measures all contestants in each round, so that changes of the machine affect all of them. Each round begins with
 * another contestant. Tells `say` the progress.
 */
export async function interleave<T>(
  contestants: readonly Contestant<T>[],
  { rounds, say }: Pick<Bench, 'rounds' | 'say'>,
): Promise<Measured<T>> {
  const measured = new Map<string, T[]>(contestants.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    const start = round % contestants.length
    for (const { name, measure } of [...contestants.slice(start), ...contestants.slice(0, start)]) {
      say(`round ${round + 1} of ${rounds}: ${name}`)
      measured.get(name)?.push(await measure())
    }
  }
  return (name) => measured.get(name) ?? []
}

/** Measures the rates of servers in turns. Rejects unless a server that is counted has written what it answered. */
export async function compareRates(
  bench: Bench,
  contestants: readonly LoadedServer[],
  measure = measureRate,
): Promise<Rates> {
  const before = await Promise.all(contestants.map(({ count }) => count?.()))
  const measured = await interleave(
    contestants.map(({ name, server, load }) => ({
      name,
      measure: () => measure(bench.workspace, server, load, bench.seconds),
    })),
    bench,
  )
  for (const [index, { name, count }] of contestants.entries()) {
    if (count === undefined) continue
    const answered = measured(name).reduce((sum, rate) => sum + rate.answered, 0)
    const written = Math.abs((await count()) - (before[index] ?? 0))
    // Requests in flight at the end of a run may have written without an answer.
    if (written < answered || written > answered + bench.rounds * RUNS_PER_ROUND * CONNECTIONS)
      throw new Error(`${name} answered for ${answered} writes and did ${written}`)
  }
  const perSecond = (name: string) => measured(name).map((rate) => rate.perSecond)
  return {
    figures: contestants.map(({ name }) => ({
      name,
      unit: 'requests/s',
      rounds: perSecond(name),
      serverBusy: measured(name).map(({ serverBusy }) => serverBusy),
    })),
    measured,
    ratio: (name, reference) => ratios(perSecond(name), perSecond(reference)),
  }
}
