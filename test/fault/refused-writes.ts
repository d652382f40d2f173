import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import type { Random } from '../support/random.ts'
import { injectFault } from '../support/strace.ts'
import { FULL_REFUSAL } from './history.ts'
import { repeatLists } from './repeated-requests.ts'
import { makeTestDatabase } from './test-database.ts'
import { until } from './until.ts'

const NOT_READY = {
  error: 50301,
  message: 'The store is out of space or read-only, nothing was stored: try again later.',
}

/** Answers and lists that show that writes and lists go on. */
const ENOUGH = 200
/** How often the disk refuses writes in a round, and the most successes before that. */
const REFUSALS = 5
const BEFORE_MAX = 2000

/** A round of a test with a disk that refuses writes at times. */
export type DiskRound = Awaited<ReturnType<typeof startDiskRound>>

/** Starts a server on a new database, with one client who lists all the time and can start loads. */
export async function startDiskRound(random: Random, folder?: string) {
  const db = await makeTestDatabase({ random, ...(folder !== undefined && { folder }) })
  const server = await db.serve()
  const lists = repeatLists(server, db.token)
  return {
    ...db,
    server,
    lists,
    startLoad: () => db.startLoad(server),
    async [Symbol.asyncDispose]() {
      await server.kill()
      await lists.stop()
      db[Symbol.dispose]()
    },
  }
}

/** Waits, under load, until writes and readiness are refused while lists go on. */
export async function untilRefusing({ server, history, lists }: DiskRound): Promise<void> {
  await until('a write is refused', () => history.refusals().length > 0)
  let ready = await server.request('GET', '/readyz')
  await until('the server is not ready', async () => {
    if (ready.status === 200) ready = await server.request('GET', '/readyz')
    return ready.status !== 200
  })
  expect([ready.status, ready.headers.get('retry-after'), await ready.json()]).toEqual([503, '1', NOT_READY])
  const listed = lists.count()
  await until('lists go on', () => lists.count() >= listed + ENOUGH)
}

/** Waits, under load, until the server stores plants and is ready. */
export async function untilStoring({ server, history }: DiskRound): Promise<void> {
  const stored = history.counts().acknowledged
  await until('plants are stored again', () => history.counts().acknowledged >= stored + ENOUGH)
  await until('the server is ready again', async () => (await server.request('GET', '/readyz')).status === 200)
}

/** Lets system calls of a loaded server fail for a while, several times, and expects the server to go on by itself. */
export async function refuseForAWhile(calls: readonly string[], error: string, random: Random): Promise<void> {
  await using round = await startDiskRound(random)
  const { server, history, lists } = round
  const load = round.startLoad()
  await load.acknowledged(1 + random(BEFORE_MAX))
  for (let count = 1; count <= REFUSALS; count++) {
    const { refused } = history.counts()
    {
      await using _injection = await injectFault(server.pid, calls, `error=${error}`)
      if (count === REFUSALS) await untilRefusing(round)
      await until('writes are refused', () => history.counts().refused > refused)
    }
    const stored = history.counts().acknowledged
    await until('plants are stored again', () => history.counts().acknowledged > stored)
  }
  await untilStoring(round)
  await load.stop()

  expect(await lists.stop()).toEqual([200])
  expect(history.refusals()).toEqual([FULL_REFUSAL])
  expect(await server.end()).toBe(0)
  expect(readdirSync(round.folder)).toEqual([basename(round.database)])
  round.check()
}
