import { LOAD_CORE, SERVER_CORE } from '../../support/process.ts'
import { allowCores, requireDatabaseServer, seedDatabase } from '../database-server.ts'
import { CONNECTIONS, createLoad, type Load, listLoad, runWrk } from '../load/wrk.ts'
import { interleave } from '../rounds.ts'
import { type Server, startPlantstore } from '../servers.ts'
import { median } from '../statistics.ts'
import type { Row } from './row.ts'

const COPIES = [1, 2, 3] as const
const ALL_CORES = `${SERVER_CORE},${LOAD_CORE}`
const WARM_UP_SECONDS = 1

type Kind = 'list' | 'create'

/** The result of a load on some copies. */
interface Measured {
  readonly perSecond: number
  /** CPU time for a request, in all copies and in PostgreSQL. */
  readonly copyUs: number
  readonly databaseUs: number
  /** The share of the machine's cores that the copies and PostgreSQL used. */
  readonly share: number
}

/** One, two and three copies of the service on one database, without pinning. */
export const pgCopies: Row = {
  name: 'pg-copies',
  title: `one, two and three copies on one database, ${CONNECTIONS} connections in all, no process bound to a core`,
  async run(bench) {
    const { workspace, seconds } = bench
    const server = requireDatabaseServer(bench)
    if (server.cpuMs !== undefined) await allowCores(server, ALL_CORES)
    const seed = await seedDatabase(workspace, server, 1000)
    const copies = await Promise.all(COPIES.map(() => startPlantstore(workspace, seed.url, { cores: ALL_CORES })))
    // Each run of wrk needs its own ids.
    const loads: Readonly<Record<Kind, Load>> = { list: listLoad(seed.tokensFile), create: createLoad(seed.tokensFile) }

    const runAll = async (used: readonly Server[], load: Load, duration: number) => {
      const all = await Promise.all(used.map((copy) => runWrk(workspace, copy, load, duration)))
      return {
        perSecond: all.reduce((sum, each) => sum + each.perSecond, 0),
        answered: all.reduce((sum, each) => sum + each.answered, 0),
      }
    }
    const measure = async (kind: Kind, count: number): Promise<Measured> => {
      const used = copies.slice(0, count)
      const connections = Math.floor(CONNECTIONS / count)
      const load = { ...loads[kind], connections }
      await runAll(used, load, WARM_UP_SECONDS)
      const cpu = () => ({ copies: used.reduce((sum, copy) => sum + copy.cpuMs(), 0), database: server.cpuMs?.() ?? 0 })
      const [startMs, start] = [performance.now(), cpu()]
      const { perSecond, answered } = await runAll(used, load, seconds)
      const [ms, end] = [performance.now() - startMs, cpu()]
      const [copyMs, databaseMs] = [end.copies - start.copies, end.database - start.database]
      return {
        perSecond,
        copyUs: (copyMs * 1000) / answered,
        databaseUs: (databaseMs * 1000) / answered,
        share: (copyMs + databaseMs) / ms / 2,
      }
    }
    const names = (['list', 'create'] as const).flatMap((kind) => COPIES.map((count) => ({ kind, count })))
    const nameOf = ({ kind, count }: (typeof names)[number]) => `${kind}, ${count} ${count === 1 ? 'copy' : 'copies'}`
    const measured = await interleave(
      names.map((each) => ({ name: nameOf(each), measure: () => measure(each.kind, each.count) })),
      bench,
    )
    return {
      figures: names.map((each) => ({
        name: nameOf(each),
        unit: 'requests/s',
        rounds: measured(nameOf(each)).map(({ perSecond }) => perSecond),
      })),
      claims: [],
      notes: names.map((each) => {
        const all = measured(nameOf(each))
        const [copyUs, databaseUs, share] = (['copyUs', 'databaseUs', 'share'] as const).map((key) =>
          median(all.map((one) => one[key])),
        )
        const percent = Math.round((share ?? 0) * 100)
        return `${nameOf(each)}: a request takes ${Math.round(copyUs ?? 0)} µs of the copies and ${Math.round(databaseUs ?? 0)} µs of PostgreSQL, together ${percent} % of both cores`
      }),
    }
  },
}
