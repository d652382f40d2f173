import { administer } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { until } from '../../support/until.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL, FULL_REFUSAL } from '../history.ts'
import { testRounds } from '../rounds.ts'
import { freeze } from './processes.ts'
import { type Round, startRound } from './round.ts'

const STANDBY = 'standby'

interface Servers {
  readonly primary: Cluster
  readonly standby: Cluster
  readonly round: Round
  /** Leads the service to the standby. */
  readonly lead: () => void
}

/** How the primary fails and the standby replaces it. May return what ends the failure once plants are stored again. */
interface Failover {
  readonly name: string
  readonly refusals: readonly string[]
  readonly run: (servers: Servers) => Promise<Disposable | undefined>
}

const FAILOVERS: readonly Failover[] = [
  {
    name: 'after the primary has crashed',
    refusals: [FAILED_REFUSAL, BUSY_REFUSAL],
    async run({ primary, standby, round, lead }) {
      primary.stop('immediate')
      await round.untilRefusing()
      standby.promote()
      lead()
      return undefined
    },
  },
  {
    name: 'while the primary stands still, which goes on later',
    refusals: [FAILED_REFUSAL, BUSY_REFUSAL],
    async run({ primary, standby, lead }) {
      const frozen = freeze(primary)
      // Some writes may have reached the standby without an answer.
      standby.promote()
      lead()
      return frozen
    },
  },
  {
    name: 'after connections were led to it, which it refused to write for',
    refusals: [FAILED_REFUSAL, BUSY_REFUSAL, FULL_REFUSAL],
    async run({ primary, standby, round, lead }) {
      primary.stop('fast')
      lead()
      await round.untilRefusing()
      standby.promote()
      return undefined
    },
  },
]

for (const { name, refusals, run } of FAILOVERS) {
  testRounds(
    `a promoted standby has every acknowledged write ${name}`,
    { short: 0, long: 20, needs: [OWN_POSTGRES] },
    async (random) => {
      using primary = await startCluster()
      using standby = await startStandby(primary)
      using proxy = startPostgresProxy(primary.url)
      await using round = await startRound(primary.url, random, proxy.by)
      {
        using _failure = await run({ primary, standby, round, lead: () => proxy.leadTo(standby.url) })
        await round.untilStoring()
      }
      await round.check(refusals, standby.url)
    },
  )
}

/** Starts a standby that has each write before the write is acknowledged. */
async function startStandby(primary: Cluster): Promise<Cluster> {
  const standby = await startCluster({}, { standby: { of: primary, name: STANDBY } })
  await administer(primary.url, async (sql) => {
    await sql.unsafe(`alter system set synchronous_standby_names = '${STANDBY}'`).simple()
    await sql`select pg_reload_conf()`
    await until('the standby is synchronous', async () => {
      const rows = await sql`select 1 from pg_stat_replication where sync_state = 'sync'`
      return rows.length > 0
    })
  })
  return standby
}
