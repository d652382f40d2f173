import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Cluster, OWN_POSTGRES, socketOf, startCluster } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../rounds.ts'
import { until } from '../watch.ts'
import { startProxy } from './proxy.ts'
import { BUSY, setScene, UNREACHABLE } from './scene.ts'

const CUTS_PER_ROUND = rounds(15, 50)
/** The part of writes of which a busy machine may be too slow to say what became of them: a group or two. */
const REFUSED_MAX = 0.05
/** Successes between two cuts, at most. */
const BETWEEN_MAX = 100

let cluster: Cluster
let cuts = 0

describe.skipIf(lacks(OWN_POSTGRES))('a connection that is cut at a commit', () => {
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => {
    cluster[Symbol.dispose]()
    console.log(`${cuts} connections cut at a commit`)
  })

  test.each(['sent', 'answered'] as const)(
    'when the group is %s: each write has the answer that is true',
    (moment) =>
      runRounds(rounds(1, 30), async (random) => {
        using proxy = startProxy(socketOf(cluster))
        await using scene = await setScene(cluster.url, random, proxy)
        for (let cut = 1; cut <= CUTS_PER_ROUND; cut++) {
          proxy.cutNext(moment)
          await until('the connection is cut', () => proxy.cuts() === cut)
          const stored = scene.answers.successes() + random(BETWEEN_MAX)
          await until('plants are stored again', () => scene.answers.successes() > stored)
        }
        cuts += proxy.cuts()
        // The database is there, so that it can be asked at once what became of them.
        expect(scene.answers.refused()).toBeLessThan(scene.answers.successes() * REFUSED_MAX)
        await scene.check([UNREACHABLE, BUSY])
      }),
    ROUNDS_TIMEOUT_MS,
  )
})
