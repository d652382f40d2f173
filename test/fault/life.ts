import { expect } from 'bun:test'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { createTokenIn } from '../support/tokens.ts'
import { type History, startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { copyDatabase, QUIET, restart } from './restart.ts'
import { type SeenCall, traceCalls } from './system-calls.ts'

/** Answers that show that a server writes. */
const ANSWERS_AT_END = 200

/** A database with the history of its one client: both go on from server to server. */
export interface Life {
  readonly database: string
  readonly token: string
  readonly history: History
  readonly random: Random
}

/** Begins one with an empty database, which is gone after its use. */
export async function beginLife(random: Random, history = startHistory()) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const life: Life = { database, token: await createTokenIn(database), history, random }
  return { ...life, [Symbol.dispose]: folder[Symbol.dispose] }
}

/** Looks at what a server has left as another process would. The next start finds it as it was. */
export function judgeLeft({ database, history }: Pick<Life, 'database' | 'history'>): void {
  using copy = copyDatabase(database)
  history.check(copy.database)
}

/** The next server starts, writes, and ends as it should; then all is there that the history says. */
export async function endInGoodOrder(life: Life): Promise<void> {
  await using server = await restart(life.database)
  const load = startLoad({ ...life, url: server.url })
  await load.acknowledged(ANSWERS_AT_END)
  await load.stop()
  expect(await server.end()).toBe(0)
  life.history.check(life.database)
}

/** The calls that a start makes until the last of its syncs, which ends what it writes. They are made on a copy. */
export async function callsOfStart(database: string): Promise<readonly SeenCall[]> {
  using copy = copyDatabase(database)
  using trace = traceCalls({})
  await using server = await serve(copy.database, QUIET, { under: trace.under })
  server.signal('SIGKILL')
  await server.ended()
  const { calls } = await trace.seen()
  return calls.slice(0, 1 + calls.findLastIndex(({ name }) => name === 'fsync'))
}
