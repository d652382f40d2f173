import { CONNECTIONS, type Load, measureRate, type Rate } from './load/wrk.ts'
import type { Claim, Goal } from './results.ts'
import type { Bench, Row } from './rows/row.ts'
import type { Server } from './servers.ts'
import { ratios } from './statistics.ts'

/** The runs of wrk in a round: warm-up and measurement. */
const RUNS_PER_ROUND = 2
const LOOK_SECONDS = 1

/** Something that is measured once in each round. */
interface Contestant<T> {
  readonly name: string
  measure(): Promise<T>
}

/** The measurements of a contestant, by its name, one for each round. */
export type Measured<T> = (name: string) => readonly T[]

/** A server under a load. */
export interface LoadedServer {
  readonly name: string
  readonly server: Server
  readonly load: Load
  /** If each request of the load makes a plant: counts the plants of the server's database. */
  readonly count?: () => number | Promise<number>
  /** The CPU time so far of the database server, if there is one. */
  readonly databaseCpuMs?: (() => number) | undefined
}

/** What a row of rates measures and claims. */
interface RatesRow extends Pick<Row, 'name' | 'title'> {
  contestants(bench: Bench): Promise<readonly LoadedServer[]>
  /** Ratios of figures. One whose reference was not measured is left out. */
  readonly claims: readonly (readonly [figure: string, reference: string, goal: Goal])[]
  /** Measures so many times for a second in each round, in place of once, for a difference that is smaller than the noise. */
  readonly looks?: number
  readonly notes?: (measured: Measured<Rate>, bench: Bench) => readonly string[]
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

/** Makes a row that measures the rates of servers in turns. */
export const ratesRow = ({ name, title, contestants, claims, looks, notes }: RatesRow): Row => ({
  name,
  title,
  async run(bench) {
    const loaded = await contestants(bench)
    const looking = looks === undefined ? bench : { ...bench, rounds: bench.rounds * looks, seconds: LOOK_SECONDS }
    const { measured, ...result } = await compareRates(looking, loaded, claims)
    return { ...result, notes: notes?.(measured, bench) ?? [] }
  },
})

/** Measures the rates of servers in turns, and compares them, and their CPU time for a request. */
export async function compareRates(
  bench: Bench,
  loaded: readonly LoadedServer[],
  claims: RatesRow['claims'],
  cpuClaims: RatesRow['claims'] = [],
) {
  const measured = await measureRates(bench, loaded)
  const names = loaded.map(({ name }) => name)
  const valuesOf = (name: string, key: keyof Rate) => measured(name).map((rate) => rate[key])
  const compare = (key: 'perSecond' | 'cpuUsPerRequest', what: string) => {
    return ([figure, reference, goal]: RatesRow['claims'][number]): Claim => ({
      ...{ name: `${figure} / ${reference}${what}`, unit: '×', ...goal },
      rounds: ratios(valuesOf(figure, key), valuesOf(reference, key)),
    })
  }
  const isMeasured = ([, reference]: RatesRow['claims'][number]) => names.includes(reference)
  return {
    measured,
    figures: names.map((name) => ({
      ...{ name, unit: 'requests/s', rounds: valuesOf(name, 'perSecond'), serverBusy: valuesOf(name, 'serverBusy') },
    })),
    claims: [
      ...claims.filter(isMeasured).map(compare('perSecond', '')),
      ...cpuClaims.filter(isMeasured).map(compare('cpuUsPerRequest', ', CPU time of a request')),
    ],
  }
}

/** Measures the rates of servers. Rejects unless a server that is counted has written what it answered. */
async function measureRates(bench: Bench, contestants: readonly LoadedServer[]): Promise<Measured<Rate>> {
  const before = await Promise.all(contestants.map(({ count }) => count?.()))
  const measured = await interleave(
    contestants.map((each) => ({
      name: each.name,
      measure: () => measureRate(bench.workspace, each.server, each.load, bench.seconds, each.databaseCpuMs),
    })),
    bench,
  )
  for (const [index, { name, count }] of contestants.entries()) {
    if (count === undefined) continue
    const answered = measured(name).reduce((sum, rate) => sum + rate.answered, 0)
    const written = (await count()) - (before[index] ?? 0)
    // Requests in flight at the end of a run may have written without an answer.
    if (written < answered || written > answered + bench.rounds * RUNS_PER_ROUND * CONNECTIONS)
      throw new Error(`${name} answered for ${answered} writes and did ${written}`)
  }
  return measured
}
