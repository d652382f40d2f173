import { type Figure, ratios } from '../claims.ts'
import { type Load, measureRate } from '../load/wrk.ts'
import { interleave } from '../rounds.ts'
import type { Server } from '../servers.ts'
import type { Bench } from './row.ts'

/** A server under a load. */
export interface LoadedServer {
  readonly name: string
  readonly server: Server
  readonly load: Load
}

/** The rates of some servers. */
export interface Rates {
  readonly figures: readonly Figure[]
  /** The ratio of two servers in each round. */
  ratio(name: string, reference: string): number[]
  /** The number of requests that a server has answered. */
  answered(name: string): number
}

/** Measures the rates of servers in turns. */
export async function compareRates(
  { workspace, rounds, seconds, say }: Bench,
  contestants: readonly LoadedServer[],
  measure = measureRate,
): Promise<Rates> {
  const measured = await interleave(
    contestants.map(({ name, server, load }) => ({
      name,
      measure: () => measure(workspace, server, load, seconds),
    })),
    rounds,
    say,
  )
  const perSecond = (name: string) => measured(name).map((rate) => rate.perSecond)
  return {
    figures: contestants.map(({ name }) => ({
      name,
      unit: 'requests/s',
      rounds: perSecond(name),
      serverBusy: measured(name).map(({ serverBusy }) => serverBusy),
    })),
    ratio: (name, reference) => ratios(perSecond(name), perSecond(reference)),
    answered: (name) => measured(name).reduce((sum, { answered }) => sum + answered, 0),
  }
}
