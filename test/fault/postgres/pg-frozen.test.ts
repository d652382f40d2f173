import { afterAll, beforeAll, describe, test } from 'bun:test'
import { CLUSTER_IS_SKIPPED, CLUSTER_NOTE, type Cluster, startCluster } from '../../support/postgres.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../scale.ts'
import { freeze } from './processes.ts'
import { BUSY, setScene, UNREACHABLE } from './scene.ts'

let cluster: Cluster
const tookMs: number[] = []

describe.skipIf(CLUSTER_IS_SKIPPED)(`a database server that stands still under load${CLUSTER_NOTE}`, () => {
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => {
    cluster[Symbol.dispose]()
    console.log(`longest time to the first write: ${Math.round(Math.max(...tookMs))} ms of ${tookMs.length}`)
  })

  test(
    'has 503 answered until it goes on, and nothing acknowledged is missing',
    () =>
      runRounds(rounds(1, 20), [], async ({ random }) => {
        await using scene = await setScene(cluster.url, random)
        {
          using _frozen = freeze(cluster)
          await scene.untilRefusing()
          await Bun.sleep(random(3000) * rounds(0, 1))
        }
        tookMs.push(await scene.untilStoring())
        await scene.judge([UNREACHABLE, BUSY])
      }),
    ROUNDS_TIMEOUT_MS,
  )
})
