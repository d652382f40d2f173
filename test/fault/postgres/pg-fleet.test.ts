import { afterAll, describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { runPlantstore, startExecutable } from '../../support/executable.ts'
import { HAPROXY, startHaproxy } from '../../support/haproxy.ts'
import { freePort, makeDatabase, POSTGRES_SERVER } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { startHistory } from '../history.ts'
import { startLoad } from '../load.ts'
import { QUIET } from '../restart.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds } from '../rounds.ts'
import { until } from '../watch.ts'
import { plantsOn } from './scene.ts'

const COPIES = 3
const CONNECTIONS = 32
/** Answers before a copy is restarted. */
const ENOUGH = 200
/** Of plants that are listed right after they were stored: above those of the history. */
const FIRST_LISTED_ID = 1_000_000
/** Longer than HAProxy takes to notice that a copy is not ready. */
const DRAIN_WAIT = '1s'
const CHECK = 'check inter 100ms fall 1 rise 1'
/** More than a busy machine takes to send and answer a request. */
const SLACK_MS = 500

type Copy = Awaited<ReturnType<typeof startExecutable>>

let requests = 0
let shown = 0

describe.skipIf(!IS_LONG || lacks(POSTGRES_SERVER, HAPROXY))('three copies behind HAProxy', () => {
  afterAll(() => console.log(`${requests} writes and ${shown} lists right after one, and none failed`))

  test(
    'restarted one after the other under load: no request fails, and each write shows in the next list',
    () =>
      runRounds(rounds(1, 20), async (random) => {
        await using fleet = await startFleet()
        const { url, token, copies } = fleet
        const history = startHistory()
        const load = startLoad({ url, token, history, random, connections: CONNECTIONS })
        const reader = readOwnWrites(url, token)
        for (let index = 0; index < COPIES; index++) {
          await load.acknowledged(history.counts().acknowledged + ENOUGH)
          expect(await copies[index]?.end()).toBe(0)
          copies[index] = await fleet.start(index)
          await until('it is ready', async () => (await copies[index]?.request('GET', '/readyz'))?.status === 200)
        }
        await load.acknowledged(history.counts().acknowledged + ENOUGH)
        await load.stop()

        expect(await reader.stop()).toEqual([])
        expect(history.counts()).toMatchObject({ refused: 0, unknown: 0 })
        const plants = await plantsOn(fleet.database)
        history.checkRows(new Map([...plants].filter(([id]) => id < FIRST_LISTED_ID)))
        requests += history.writes().length
        shown += reader.count()
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test('refuse a token that was revoked, each of them within the time that is promised', async () => {
    await using fleet = await startFleet()
    const { token, copies } = fleet
    const statuses = () =>
      Promise.all(copies.map(async (copy) => (await copy.request('GET', '/plants?limit=1', { token })).status))
    expect(await statuses()).toEqual([200, 200, 200])

    const revoking = runPlantstore(['token', 'revoke', '--user', 'me', '--yes', '--database', fleet.database])
    let isRevoked = false
    void revoking.then(() => {
      isRevoked = true
    })
    // So that none of them has to ask.
    while (!isRevoked) await statuses()
    const revokedMs = performance.now()
    expect((await revoking).exitCode).toBe(0)

    await until('all refuse it', async () => (await statuses()).every((status) => status === 401))
    expect(performance.now() - revokedMs).toBeLessThan(TOKEN_CHANGES_SEEN_WITHIN_MS + SLACK_MS)
  })
})

/** Three copies on one new database, and HAProxy before them, which asks each whether it is ready. */
async function startFleet() {
  const database = await makeDatabase({ isEmpty: true })
  const token = await createTokenIn(database.url)
  const ports = Array.from({ length: COPIES }, freePort)
  const start = (index: number) =>
    startExecutable([
      ...['serve', '--listen', `127.0.0.1:${ports[index]}`, '--database', database.url],
      ...['--drain-wait', DRAIN_WAIT, ...QUIET],
    ])
  const copies: Copy[] = []
  for (let index = 0; index < COPIES; index++) copies.push(await start(index))
  const proxy = await startHaproxy('http', [
    // So that it takes no part in what fails.
    'retries 0',
    'option httpchk GET /readyz',
    'http-check expect status 200',
    ...ports.map((port, index) => `server copy${index} 127.0.0.1:${port} ${CHECK}`),
  ])
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    database: database.url,
    token,
    copies,
    start,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      for (const copy of copies) await copy.kill()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Stores a plant and lists it, again and again, each request at the copy whose turn it is. */
function readOwnWrites(url: string, token: string) {
  const headers = { authorization: `Bearer ${token}` }
  const wrong: string[] = []
  let id = FIRST_LISTED_ID
  let isStopped = false
  const read = async () => {
    while (!isStopped) {
      const name = `Fern ${++id}`
      const created = await fetch(`${url}/plants`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ id, name }),
      })
      const listed = await fetch(`${url}/plants?after=${id - 1}&limit=1`, { headers })
      const seen = `${created.status} ${await created.text()} ${listed.status} ${await listed.text()}`
      if (seen !== `200 {"name":"${name}"} 200 [{"name":"${name}"}]`) wrong.push(seen)
    }
  }
  const reading = read().catch((error: unknown) => wrong.push(String(error)))
  return {
    count: () => id - FIRST_LISTED_ID,
    /** Resolves to what was answered otherwise than it had to be. */
    async stop(): Promise<readonly string[]> {
      isStopped = true
      await reading
      return wrong
    },
  }
}
