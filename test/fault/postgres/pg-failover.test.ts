import { expect } from 'bun:test'
import { administer } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import type { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { until } from '../../support/until.ts'
import { FULL_REFUSAL } from '../history.ts'
import { rounds } from '../rounds.ts'
import { freeze } from './processes.ts'
import { type Round, testFault } from './round.ts'

const CUTS_PER_ROUND = rounds(15, 50)
/** The part of writes whose outcome a busy machine may be too slow to learn: a group or two. */
const REFUSED_MAX = 0.05
/** Successes between two cuts, at most. */
const BETWEEN_MAX = 100
/** A group of writes names its writer, which is a UUID. */
const WRITER = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/

for (const moment of ['sent', 'answered'] as const) {
  testFault({
    ...{ name: `if its connection is cut after a group was ${moment}`, short: 1, long: 30, byProxy: true },
    async run({ proxy, round, random }) {
      for (let cut = 1; cut <= CUTS_PER_ROUND; cut++) {
        await cutNextGroup(proxy, moment)
        const stored = round.history.counts().acknowledged + random(BETWEEN_MAX)
        await until('plants are stored again', (see) => see(round.history.counts()).acknowledged > stored)
      }
      // The database still runs, so the service can learn the outcome at once.
      expect(round.history.errors()).toBeLessThan(round.history.counts().acknowledged * REFUSED_MAX)
      return undefined
    },
  })
}

/** Cuts the connection that brings the next group: when the database has the group, or when its answer arrives. */
async function cutNextGroup(
  { decide }: ReturnType<typeof startPostgresProxy>,
  moment: 'sent' | 'answered',
): Promise<void> {
  let ofGroup: object | undefined
  let isCut = false
  decide((from, bytes, connection) => {
    if (isCut) return 'pass'
    if (ofGroup === undefined && from === 'client' && WRITER.test(bytes.toString('latin1'))) ofGroup = connection
    isCut = ofGroup === connection && (moment === 'sent' || from === 'server')
    if (!isCut) return 'pass'
    return moment === 'sent' ? 'passThenCut' : 'cut'
  })
  await until('the connection is cut', () => isCut)
}

const STANDBY = 'standby'
const LED = 'after connections were led to it, which it refused to write for'

/** How a primary fails and a standby replaces it. May return what ends the failure once plants are stored again. */
type Failover = (primary: Cluster, standby: Cluster, round: Round, lead: () => void) => Promise<Disposable | undefined>

const FAILOVERS: Readonly<Record<string, Failover>> = {
  'after the primary has crashed': async (primary, standby, round, lead) => {
    primary.stop('immediate')
    await round.untilRefusing()
    standby.promote()
    lead()
    return undefined
  },
  'while the primary stands still, which goes on later': async (primary, standby, _, lead) => {
    const frozen = freeze(primary)
    // Some writes may have reached the standby without an answer.
    standby.promote()
    lead()
    return frozen
  },
  [LED]: async (primary, standby, round, lead) => {
    primary.stop('fast')
    lead()
    await round.untilRefusing()
    standby.promote()
    return undefined
  },
}

for (const [when, fail] of Object.entries(FAILOVERS)) {
  let standby: Cluster | undefined
  testFault({
    ...{
      name: `if a standby is promoted ${when}`,
      long: 20,
      byProxy: true,
      // The service does not trust a server at once that was a standby before.
      ...(when === LED && { waitMs: 5000, refusals: [FULL_REFUSAL] }),
    },
    place: () => ({ [Symbol.dispose]: () => standby?.[Symbol.dispose]() }),
    async run({ cluster, proxy, round }) {
      const other = await startStandby(cluster)
      standby = other
      using _failure = await fail(cluster, other, round, () => proxy.leadTo(other.url))
      await round.untilStoring()
      return other
    },
  })
}

/** Starts a standby that has each write before the write is acknowledged. */
async function startStandby(primary: Cluster): Promise<Cluster> {
  const standby = await startCluster({}, { standby: { of: primary, name: STANDBY } })
  await administer(primary.url, async (sql) => {
    await sql.unsafe(`alter system set synchronous_standby_names = '${STANDBY}'`).simple()
    await sql`select pg_reload_conf()`
    await until('the standby is synchronous', async (see) => {
      const rows = await sql`select state, sync_state from pg_stat_replication`
      return see([...rows]).some((row) => row.sync_state === 'sync')
    })
  })
  return standby
}
