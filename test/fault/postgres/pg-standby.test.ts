import { afterAll, describe, test } from 'bun:test'
import { administer, type Cluster, OWN_POSTGRES, socketOf, startCluster, urlOf } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds, testLong } from '../rounds.ts'
import { until } from '../watch.ts'
import { freeze } from './processes.ts'
import { startProxy } from './proxy.ts'
import { BUSY, FULL, setScene, UNREACHABLE } from './scene.ts'

const STANDBY = 'standby'

const tookMs: number[] = []

describe.skipIf(!IS_LONG || lacks(OWN_POSTGRES))('a standby that is promoted under load', () => {
  afterAll(() =>
    console.log(`longest time to the first write: ${Math.round(Math.max(...tookMs))} ms of ${tookMs.length}`),
  )

  testLong(
    'when the primary has ended: 503 until then, and nothing acknowledged is missing',
    () =>
      runRounds(20, async (random) => {
        using primary = await startCluster()
        using standby = await startStandby(primary)
        using proxy = startProxy(socketOf(primary))
        await using scene = await setScene(primary.url, random, { ...proxy, isLeft: true })

        primary.stop('immediate')
        await scene.untilRefusing()
        standby.promote()
        proxy.leadTo(socketOf(standby))

        tookMs.push(await scene.untilStoring())
        await scene.check([UNREACHABLE, BUSY], urlOf(standby.url, scene.database.name))
      }),
    ROUNDS_TIMEOUT_MS,
  )

  testLong(
    'when the primary stands still and goes on later: nothing of what it does then was answered with success',
    () =>
      runRounds(20, async (random) => {
        using primary = await startCluster()
        using standby = await startStandby(primary)
        using proxy = startProxy(socketOf(primary))
        await using scene = await setScene(primary.url, random, { ...proxy, isLeft: true })
        {
          using _frozen = freeze(primary)
          // Writes that have reached the standby may have no answer yet.
          standby.promote()
          proxy.leadTo(socketOf(standby))
          tookMs.push(await scene.untilStoring())
        }
        await scene.check([UNREACHABLE, BUSY], urlOf(standby.url, scene.database.name))
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'before connections are led to it: a standby that takes no writes has them refused, and is used once it is promoted',
    () =>
      runRounds(rounds(1, 20), async (random) => {
        using primary = await startCluster()
        using standby = await startStandby(primary)
        using proxy = startProxy(socketOf(primary))
        await using scene = await setScene(primary.url, random, { ...proxy, isLeft: true })

        primary.stop('fast')
        proxy.leadTo(socketOf(standby))
        await scene.untilRefusing()
        standby.promote()

        tookMs.push(await scene.untilStoring())
        await scene.check([UNREACHABLE, BUSY, FULL], urlOf(standby.url, scene.database.name))
      }),
    ROUNDS_TIMEOUT_MS,
  )
})

/** A standby that has everything before it is answered. */
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
