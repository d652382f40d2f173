import { expect } from 'bun:test'
import { administer } from '../../support/postgres.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL, FULL_REFUSAL } from '../history.ts'
import { FORMS_COUNT, startPlantModel } from '../plant-model.ts'
import { testRounds } from '../rounds.ts'
import { HAPROXY, startHaproxy } from './haproxy.ts'
import { PATRONI, startPatroni } from './patroni.ts'
import { plantsIn, startRound } from './round.ts'

const NODES = 3
const KILLS = 10
/** The load on each of two copies. A client waits after a 503, because an outage takes half a minute. */
const LOAD = { connections: 16, pauseMs: 100 }
/** Successes after a kill that show that writes go on, and answers to the model. How long they may take to come. */
const ENOUGH = 500
const MODEL_ENOUGH = 4000
const MODEL_WORKERS = 16
const DEADLINE_MS = 120_000

testRounds(
  'three nodes of Patroni behind HAProxy lose no acknowledged write when their primary is killed again and again',
  { short: 0, long: 1, needs: [PATRONI, HAPROXY] },
  async (random) => {
    using patroni = await startPatroni()
    const { nodes } = patroni
    const [ports, checks] = [nodes.map(({ port }) => port), nodes.map(({ rest }) => rest)]
    await using proxy = await startHaproxy('haproxy-patroni.cfg', ports, { checks })
    const database = patroni.urlBy(proxy.port)
    await until('every connection is led to the primary', () => isLedToPrimary(database))
    await using one = await startRound(database, random, { user: 'one', load: LOAD })
    await using other = await startRound(database, random, { user: 'other', load: LOAD })
    const token = await createTokenIn(database, 'model')
    const model = startPlantModel([one.service, other.service], token, random, MODEL_WORKERS)
    const acknowledged = () => one.history.counts().acknowledged + other.history.counts().acknowledged
    for (let kill = 1; kill <= KILLS; kill++) {
      const what = kill % 2 === 0 ? 'machine' : 'database'
      const primary = await patroni.untilThereIs('primary')
      await patroni.untilThereIs('sync')
      const killedMs = performance.now()
      await patroni.kill(primary, what)
      const wanted = acknowledged() + ENOUGH
      await until('writes go on', () => acknowledged() >= wanted, { limitMs: DEADLINE_MS })
      const tookMs = Math.round(performance.now() - killedMs)
      console.log(`kill ${kill}, of the ${what} ${primary.name}: ${ENOUGH} writes within ${tookMs} ms`)
      await until('the model goes on', () => model.counts().answered >= kill * MODEL_ENOUGH, { limitMs: DEADLINE_MS })
      if (what === 'machine') patroni.start(primary)
      await patroni.untilAllRun()
    }
    await model.stop()
    const errors = one.history.errors() + other.history.errors()
    expect(model.wrong(await plantsIn(database, 'model'))).toEqual([])
    expect(model.counts()).toMatchObject({ living: MODEL_WORKERS, forms: FORMS_COUNT })
    for (const copy of [one, other]) await copy.check([FAILED_REFUSAL, BUSY_REFUSAL, FULL_REFUSAL])
    console.log(`${acknowledged()} writes acknowledged, ${errors} answered by 503`)
    console.log(`the model: ${JSON.stringify(model.counts())}`)
  },
)

/** HAProxy also leads connections to the replicas until it has checked them, and to nobody while it knows no primary. */
async function isLedToPrimary(database: string): Promise<boolean> {
  const isPrimary = async (sql: Bun.SQL) => !(await sql`select pg_is_in_recovery() as it`)[0].it
  for (let turn = 0; turn < 2 * NODES; turn++) {
    if (!(await administer(database, isPrimary).catch(() => false))) return false
  }
  return true
}
