import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Cluster, OWN_POSTGRES, startCluster } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../rounds.ts'
import { freeze } from './processes.ts'
import { BUSY, type Scene, setScene, UNREACHABLE } from './scene.ts'

/** What --idle-timeout is at least: it cuts who has not been answered by then. */
const IDLE_TIMEOUT_MIN_MS = 5000
/** Requests come all the while, at every stage of what a store finds out. */
const REQUESTS = 12
const PAUSE_MS = 250

let cluster: Cluster
const tookMs: number[] = []
const longestMs: number[] = []

describe.skipIf(!IS_LONG || lacks(OWN_POSTGRES))('a database server that stands still under load', () => {
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => {
    cluster[Symbol.dispose]()
    console.log(`longest time to the first write: ${Math.round(Math.max(...tookMs))} ms of ${tookMs.length}`)
    console.log(`longest time to an answer while it stands still: ${Math.round(Math.max(...longestMs))} ms`)
  })

  test(
    'has 503 answered until it goes on, and nothing acknowledged is missing',
    () =>
      runRounds(rounds(1, 20), async (random) => {
        await using scene = await setScene(cluster.url, random)
        {
          using _frozen = freeze(cluster)
          const asking = askAllTheWhile(scene)
          await scene.untilRefusing()
          longestMs.push(await asking)
        }
        expect(Math.max(...longestMs)).toBeLessThan(IDLE_TIMEOUT_MIN_MS)
        tookMs.push(await scene.untilStoring())
        await scene.check([UNREACHABLE, BUSY])
      }),
    ROUNDS_TIMEOUT_MS,
  )
})

/** Sends a delete and a list again and again. Resolves to how long the longest was not answered. */
async function askAllTheWhile({ service, token }: Scene): Promise<number> {
  const ask = async (method: string, path: string) => {
    const sentMs = performance.now()
    const response = await service.request(method, path, { token })
    await response.text()
    expect(response.status).toBe(503)
    return performance.now() - sentMs
  }
  const asked: Promise<number>[] = []
  for (let request = 0; request < REQUESTS; request++) {
    asked.push(ask('DELETE', '/plants/0'), ask('GET', '/plants?limit=1'))
    await Bun.sleep(PAUSE_MS)
  }
  return Math.max(...(await Promise.all(asked)))
}
