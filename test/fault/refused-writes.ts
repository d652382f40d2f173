import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { injectFault } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { QUIET } from './restart.ts'
import { countAnswers, until, watchLists } from './watch.ts'

/** How a write is refused that a disk does not take, and the answer of `/readyz` then. */
export const REFUSED = '503 50301, Retry-After: 1'
const NOT_READY = {
  error: 50301,
  message: 'The store is out of space or read-only, nothing was stored: try again later.',
}

/** Answers and lists that show that there are such. */
const ENOUGH = 200
/** How often a disk changes its mind in a round, and successes before, at most. */
const TIMES = 5
const BEFORE_MAX = 2000

/** What there is in a round of a test with a disk that does not take writes at times. */
export type Scene = Awaited<ReturnType<typeof setScene>>

/** A server on a new database in a folder, with one client who lists without end, and can load it. */
export async function setScene(folder: string, random: Random) {
  const database = join(folder, 'plantstore.db')
  const token = await createTokenIn(database)
  const server = await serve(database, QUIET)
  const history = startHistory()
  const answers = countAnswers()
  const lists = watchLists(server, token)
  const start = () => startLoad({ url: server.url, token, history, random, onAnswer: answers.record })
  return {
    database,
    server,
    history,
    /** Those to all loads. */
    answers,
    lists,
    startLoad: start,
    /** Has so many writes answered with success, or some more, by a load that is over then. */
    async store(count: number) {
      const load = start()
      await load.acknowledged(count)
      await load.stop()
    },
    async [Symbol.asyncDispose]() {
      await server.kill()
      await lists.stop()
    },
  }
}

/** Waits, under load, until all is as it must be while the disk takes no writes. */
export async function untilRefusing({ server, answers, lists }: Scene): Promise<void> {
  await until('a write is refused', () => answers.refused() > 0)
  let ready = await server.request('GET', '/readyz')
  await until('the server is not ready', async () => {
    if (ready.status === 200) ready = await server.request('GET', '/readyz')
    return ready.status !== 200
  })
  expect([ready.status, ready.headers.get('retry-after'), await ready.json()]).toEqual([503, '1', NOT_READY])
  const listed = lists.count()
  await until('lists go on', () => lists.count() >= listed + ENOUGH)
}

/** Waits, under load, until the disk takes writes again, by itself. */
export async function untilStoring({ server, answers }: Scene): Promise<void> {
  const stored = answers.successes()
  await until('plants are stored again', () => answers.successes() >= stored + ENOUGH)
  await until('the server is ready again', async () => (await server.request('GET', '/readyz')).status === 200)
}

/** A round in which system calls of a loaded server fail for a while, by strace, and again and again: it goes on by itself. */
export async function refuseForAWhile(calls: readonly string[], error: string, random: Random): Promise<void> {
  using folder = makeFolder()
  await using scene = await setScene(folder.path, random)
  const { server, answers, lists, history } = scene
  const load = scene.startLoad()
  await load.acknowledged(1 + random(BEFORE_MAX))
  for (let time = 1; time <= TIMES; time++) {
    const refused = answers.refused()
    {
      await using _injection = await injectFault(server.pid, calls, `error=${error}`)
      if (time === TIMES) await untilRefusing(scene)
      await until('writes are refused', () => answers.refused() > refused)
    }
    const stored = answers.successes()
    await until('plants are stored again', () => answers.successes() > stored)
  }
  await untilStoring(scene)
  await load.stop()

  expect(await lists.stop()).toEqual([200])
  expect(answers.refusals()).toEqual([REFUSED])
  expect(await server.end()).toBe(0)
  expect(readdirSync(folder.path)).toEqual([basename(scene.database)])
  history.check(scene.database)
}
