import { expect } from 'bun:test'
import { serve } from '../../support/executable.ts'
import { administer } from '../../support/postgres.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { type Answer, BUSY_REFUSAL, FAILED_REFUSAL, FULL_REFUSAL, startHistory } from '../history.ts'
import { startLoad } from '../load.ts'
import { testRounds } from '../rounds.ts'
import { QUIET } from '../test-database.ts'
import { HAPROXY, startHaproxy } from './haproxy.ts'
import { PATRONI, startPatroni } from './patroni.ts'
import { plantsIn } from './round.ts'

const NODES = 3
const KILLS = 10
/** The connections of the load on each of the two copies. */
const CONNECTIONS = 16
const PAUSE_MS = 100
/** The ids of the second copy's plants begin here. */
const SECOND_ID = 10_000_000
/** Successes after a kill that show that writes go on, and how long they may take to come. */
const ENOUGH = 500
const DEADLINE_MS = 120_000

testRounds(
  'three nodes of Patroni behind HAProxy lose no acknowledged write when their primary is killed again and again',
  { short: 0, long: 1, needs: [PATRONI, HAPROXY] },
  async (random) => {
    using patroni = await startPatroni()
    await using proxy = await startHaproxy('tcp', [
      'option httpchk GET /primary',
      'http-check expect status 200',
      'default-server inter 500ms fall 1 rise 1 on-marked-down shutdown-sessions',
      ...patroni.nodes.map(({ name, port, rest }) => `server ${name} 127.0.0.1:${port} check port ${rest}`),
    ])
    const database = patroni.urlBy(proxy.port)
    await until('every connection is led to the primary', () => isLedToPrimary(database))
    const token = await createTokenIn(database)
    const gaps = watchGaps()
    const onAnswer = ({ status }: Answer) => {
      if (status < 300) gaps.recordSuccess()
    }
    const histories = [startHistory(), startHistory(SECOND_ID)]
    const acknowledged = () => histories.reduce((sum, history) => sum + history.counts().acknowledged, 0)
    const copies: Awaited<ReturnType<typeof serve>>[] = []
    try {
      for (const _ of histories) copies.push(await serve(database, QUIET))
      const loads = histories.map((history, index) =>
        startLoad({
          ...{ url: copies[index]?.url ?? '', token, history, random, onAnswer },
          ...{ connections: CONNECTIONS, pauseMs: PAUSE_MS },
        }),
      )
      await untilMore(acknowledged, ENOUGH)
      for (let kill = 1; kill <= KILLS; kill++) {
        const what = kill % 2 === 0 ? 'machine' : 'database'
        const primary = await patroni.untilThereIs('primary')
        await patroni.untilThereIs('sync')
        gaps.begin()
        await patroni.kill(primary, what)
        await untilMore(acknowledged, ENOUGH)
        console.log(`kill ${kill}, of the ${what} ${primary.name}: no success for ${gaps.longestMs()} ms`)
        if (what === 'machine') patroni.start(primary)
        await patroni.untilAllRun()
      }
      for (const load of loads) await load.stop()
      for (const copy of copies) expect(await copy.end()).toBe(0)
    } finally {
      for (const copy of copies) await copy.kill()
    }

    const plants = [...(await plantsIn(database))]
    for (const [index, history] of histories.entries()) {
      history.checkRows(new Map(plants.filter(([id]) => id >= SECOND_ID === (index === 1))))
    }
    const known = [FAILED_REFUSAL, BUSY_REFUSAL, FULL_REFUSAL]
    const refusals = histories.flatMap((history) => history.refusals())
    expect(refusals.filter((refusal) => !known.includes(refusal))).toEqual([])
    const errors = histories.reduce((sum, history) => sum + history.errors(), 0)
    console.log(`${acknowledged()} writes acknowledged, ${errors} answered by 503`)
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

/** Measures the longest time without a success since `begin`. */
function watchGaps() {
  let lastMs = performance.now()
  let longestMs = 0
  return {
    recordSuccess(): void {
      const nowMs = performance.now()
      longestMs = Math.max(longestMs, nowMs - lastMs)
      lastMs = nowMs
    },
    begin(): void {
      longestMs = 0
    },
    longestMs: () => Math.round(longestMs),
  }
}

function untilMore(count: () => number, more: number): Promise<boolean> {
  const wanted = count() + more
  return until('writes go on', () => count() >= wanted, { limitMs: DEADLINE_MS })
}
