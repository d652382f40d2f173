import { expect } from 'bun:test'
import { cpSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { type Random, randomNumbers } from '../support/random.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { untilEnded } from '../support/until.ts'
import { FAILED_REFUSAL, startHistory } from './history.ts'
import { type LoadOptions, startLoad } from './load.ts'
import { fatalReasons } from './server-log.ts'

/** The promise of a start, also after a kill. */
const START_LIMIT_MS = 1000
/** Successes that show that a server writes. */
const ENOUGH = 200

/** Flags of servers under load. With 64 connections the access log would be most of the work. */
export const QUIET = ['--access-log', 'off']

/** Faults meet the caches and the writes of several threads, on whatever core. */
export const THREADS = process.platform === 'linux' ? 3 : 1

/** A server that was started. */
export type Server = Awaited<ReturnType<typeof serve>>
/** A database with one client. */
export type TestDatabase = Awaited<ReturnType<typeof makeTestDatabase>>

interface TestDatabaseOptions {
  readonly random?: Random
  readonly history?: ReturnType<typeof startHistory>
  /** Where the database is made; by default in a folder of its own. */
  readonly folder?: string
}

/** Makes an empty database, a token of its one client, and the history of that client's writes over all servers to come. */
export async function makeTestDatabase(options: TestDatabaseOptions = {}) {
  const { random = randomNumbers(1), history = startHistory() } = options
  const ownFolder = options.folder === undefined ? makeFolder() : undefined
  const folder = options.folder ?? ownFolder?.path ?? ''
  const database = join(folder, 'plantstore.db')
  const token = await createTokenIn(database)
  const servers: Server[] = []
  const dispose = () => ownFolder?.[Symbol.dispose]()
  return {
    folder,
    database,
    token,
    history,
    random,
    async serve(flags: readonly string[] = QUIET, options: Parameters<typeof serve>[2] = {}): Promise<Server> {
      const server = await serve(database, ['--threads', `${THREADS}`, ...flags], options)
      servers.push(server)
      return server
    },
    startLoad: ({ url }: Pick<Server, 'url'>, options: LoadOptions = {}) =>
      startLoad({ url, token, history, random, ...options }),
    /** Checks the database, which changes its files. */
    check: () => history.check(database),
    /** Checks a copy of the database as a server has left it. */
    checkCopy() {
      using copy = copyDatabase(database)
      history.check(copy.database)
    },
    [Symbol.dispose]: dispose,
    /** Kills all servers that were started by `serve`, too. */
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map(({ kill }) => kill()))
      dispose()
    },
  }
}

/**
 * Copies the files that a server has left, because reading a database changes its files. No process may have the
 * database open.
 */
export function copyDatabase(database: string) {
  const folder = makeFolder()
  cpSync(dirname(database), folder.path, { recursive: true })
  return { database: join(folder.path, basename(database)), [Symbol.dispose]: folder[Symbol.dispose] }
}

/** Starts a server on the files that another one has left. Throws unless the server is ready in time. */
export async function restart(database: string) {
  const beginMs = performance.now()
  const server = await serve(database, QUIET)
  const ready = await server.request('GET', '/readyz')
  const startMs = performance.now() - beginMs
  if (ready.status === 200 && startMs < START_LIMIT_MS + SLACK_MS) return server
  await server.kill()
  throw new Error(`the next start took ${Math.round(startMs)} ms, and was told ${ready.status} ${await ready.text()}`)
}

/** Expects that a server under load ends by itself, with this reason, and acknowledges none of the writes from this place on. */
export async function expectFailure(
  { history }: Pick<TestDatabase, 'history'>,
  server: Server,
  load: ReturnType<typeof startLoad>,
  { sentBefore, reason }: { readonly sentBefore: number; readonly reason: RegExp },
): Promise<void> {
  expect(await untilEnded(server)).toBe(3)
  await load.stop()
  const late = history.writes().slice(sentBefore)
  expect(late.length).toBeGreaterThan(0)
  expect(late.filter(({ outcome }) => outcome === 'acknowledged')).toEqual([])
  expect(history.failures().filter((refusal) => refusal !== FAILED_REFUSAL)).toEqual([])
  expect(fatalReasons(server)).toEqual([expect.stringMatching(reason)])
  expect(server.stderr()).toBe('')
}

/** Restarts the server, loads it, ends it in good order, and checks the history. */
export async function expectRecovery(db: Pick<TestDatabase, 'database' | 'startLoad' | 'check'>): Promise<void> {
  await using server = await restart(db.database)
  const load = db.startLoad(server)
  await load.acknowledged(ENOUGH)
  await load.stop()
  expect(await server.end()).toBe(0)
  db.check()
}
