import { ALL_CORES } from '../../support/process.ts'
import { allowCores, requireDatabaseServer, seedDatabase } from '../database-server.ts'
import { CONNECTIONS, createLoad, type Load, listLoad, measureRate, type Rate } from '../load/wrk.ts'
import { interleave } from '../rounds.ts'
import { startPlantstore } from '../servers.ts'
import { median } from '../statistics.ts'
import type { Row } from './row.ts'

const COPIES = [1, 2, 3] as const

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
    if (server.pid !== undefined) allowCores(server, ALL_CORES)
    const seed = await seedDatabase(workspace, server, 1000)
    const copies = await Promise.all(COPIES.map(() => startPlantstore(workspace, seed.url, { cores: ALL_CORES })))
    const loads: Readonly<Record<Kind, Load>> = { list: listLoad(seed.tokensFile), create: createLoad(seed.tokensFile) }

    const measure = async (kind: Kind, count: number): Promise<Measured> => {
      const load = { ...loads[kind], connections: Math.floor(CONNECTIONS / count) }
      const used = copies.slice(0, count)
      const rates = await Promise.all(used.map((copy) => measureRate(workspace, copy, load, seconds, server.cpuMs)))
      const sum = (of: (rate: Rate) => number) => rates.reduce((total, rate) => total + of(rate), 0)
      const perSecond = sum((rate) => rate.perSecond)
      const databaseBusy = rates[0]?.databaseBusy ?? 0
      return {
        perSecond,
        copyUs: sum((rate) => rate.perSecond * rate.cpuUsPerRequest) / perSecond,
        databaseUs: (databaseBusy * 1_000_000) / perSecond,
        share: (sum((rate) => rate.serverBusy) + databaseBusy) / 2,
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
      notes: names.map(nameOf).map((name) => {
        const medianOf = (key: keyof Measured) => median(measured(name).map((one) => one[key]))
        const [copies, database] = [medianOf('copyUs').toFixed(0), medianOf('databaseUs').toFixed(0)]
        const percent = Math.round(medianOf('share') * 100)
        return `${name}: a request takes ${copies} µs of the copies and ${database} µs of PostgreSQL, together ${percent} % of both cores`
      }),
    }
  },
}
