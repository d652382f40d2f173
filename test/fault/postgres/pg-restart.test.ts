import { afterAll, beforeAll, describe, test } from 'bun:test'
import { type Cluster, OWN_POSTGRES, startCluster } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../rounds.ts'
import { BUSY, setScene, UNREACHABLE } from './scene.ts'

let cluster: Cluster
const tookMs: number[] = []

describe.skipIf(lacks(OWN_POSTGRES))('a database server that is restarted under load', () => {
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => {
    cluster[Symbol.dispose]()
    console.log(`longest time to the first write: ${Math.round(Math.max(...tookMs))} ms of ${tookMs.length} restarts`)
  })

  test.each(['fast', 'immediate'] as const)(
    '%s: has 503 answered while it is down, and nothing acknowledged is missing',
    (mode) =>
      runRounds(rounds(1, 30), async (random) => {
        await using scene = await setScene(cluster.url, random)
        cluster.stop(mode)
        await scene.untilRefusing()
        cluster.start()
        tookMs.push(await scene.untilStoring())
        await scene.check([UNREACHABLE, BUSY])
      }),
    ROUNDS_TIMEOUT_MS,
  )
})
