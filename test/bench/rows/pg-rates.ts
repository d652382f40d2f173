import type { DatabaseServer } from '../database-server.ts'
import { measureRate } from '../load/wrk.ts'
import { median } from '../statistics.ts'
import { compareRates, type LoadedServer, type Rates } from './rates.ts'
import type { Bench } from './row.ts'

/** The PostgreSQL server of the run. Throws if there is none. */
export function requireDatabaseServer({ databaseServer }: Bench): DatabaseServer {
  if (databaseServer === undefined) throw new Error('it needs --database')
  return databaseServer
}

/** Like `compareRates`, with the share of a core that PostgreSQL used for each server. */
export async function compareOnServer(
  bench: Bench,
  contestants: readonly LoadedServer[],
): Promise<Rates & { readonly notes: readonly string[] }> {
  const { cpuMs } = requireDatabaseServer(bench)
  const shares = new Map<string, number[]>(contestants.map(({ name }) => [name, []]))
  const rates = await compareRates(bench, contestants, async (workspace, server, load, seconds) => {
    const [startMs, startCpuMs] = [performance.now(), cpuMs?.() ?? 0]
    const rate = await measureRate(workspace, server, load, seconds)
    const share = ((cpuMs?.() ?? 0) - startCpuMs) / (performance.now() - startMs)
    shares.get(server.name)?.push(share)
    return rate
  })
  if (cpuMs === undefined) return { ...rates, notes: [] }
  const notes = [...shares].map(
    ([name, all]) =>
      `under ${name} PostgreSQL used ${Math.round(median(all) * 100)} % of the core that it shares with wrk`,
  )
  return { ...rates, notes }
}
