import { afterAll, beforeAll, describe, test } from 'bun:test'
import { CLUSTER_IS_SKIPPED, CLUSTER_NOTE, type Cluster, startCluster } from '../../support/postgres.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../scale.ts'
import { BUSY, setScene, UNREACHABLE } from './scene.ts'

let cluster: Cluster
const tookMs: number[] = []

describe.skipIf(CLUSTER_IS_SKIPPED)(`a database server that is restarted under load${CLUSTER_NOTE}`, () => {
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
      runRounds(rounds(1, 30), [], async ({ random }) => {
        await using scene = await setScene(cluster.url, random)
        cluster.stop(mode)
        await scene.untilRefusing()
        cluster.start()
        tookMs.push(await scene.untilStoring())
        await scene.judge([UNREACHABLE, BUSY])
      }),
    ROUNDS_TIMEOUT_MS,
  )
})
