import { afterAll, expect } from 'bun:test'
import { serve } from '../../support/executable.ts'
import { administer, makeDatabase } from '../../support/postgres.ts'
import type { Random } from '../../support/random.ts'
import { SLACK_MS } from '../../support/slack.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { type PlantRow, startHistory } from '../history.ts'
import { startLoad } from '../load.ts'
import { QUIET } from '../restart.ts'
import { rounds } from '../rounds.ts'
import { countAnswers, until } from '../watch.ts'

/** How soon writes succeed after the database can be written again. `bun run check:long` has the machine for itself. */
const RECOVERY_MAX_MS = 1000 + rounds(SLACK_MS, 0)
/** The age of the result that `/readyz` answers; see READINESS_MAX_AGE_MS in src. */
const READINESS_MAX_AGE_MS = 1000

/** Successes before a fault at most, and successes after it that show that writes go on. */
const BEFORE_MAX = 1000
const ENOUGH = 200
const CONNECTIONS = 32
const PROBE_PAUSE_MS = 20

/** The answers that clients may get while the database fails. */
export const UNREACHABLE = '503 50302, Retry-After: 1'
export const BUSY = '503 50303, Retry-After: 1'
export const FULL = '503 50301, Retry-After: 1'

/** A service under load, whose database is about to fail. */
export type Round = Awaited<ReturnType<typeof startRound>>

interface RoundOptions {
  /** Returns the URL of the database that the service is given, for example one that leads to a proxy. */
  readonly by?: (url: string) => string
  /** A statement for the new database. */
  readonly statement?: (database: string) => string
  /** Whether the server is gone at the end of the round, and its database with it. */
  readonly losesServer?: boolean
}

/** Starts a service on a new database of a server, a load on it, and probes of `/healthz`. */
export async function startRound(server: string, random: Random, options: RoundOptions = {}) {
  const { by = (url) => url, statement, losesServer = false } = options
  const database = await makeDatabase({ server, isEmpty: true })
  if (statement !== undefined) await administer(server, (sql) => sql.unsafe(statement(database.name)).simple())
  const token = await createTokenIn(database.url)
  const service = await serve(by(database.url), QUIET)
  const [history, answers] = [startHistory(), countAnswers()]
  const { url } = service
  const load = startLoad({ url, token, history, random, connections: CONNECTIONS, onAnswer: answers.record })
  const health = probeHealth(service)
  await load.acknowledged(1 + random(BEFORE_MAX))
  return {
    database,
    token,
    service,
    history,
    answers,
    untilRefusing: () => untilRefusing(service, answers),
    untilStoring: () => untilStoring(service, answers),
    /** Ends the load and the service, and compares the stored plants with the answers. */
    async check(refusals: readonly string[], storedIn = database.url): Promise<void> {
      await load.stop()
      expect(await health.stop()).toEqual([200])
      expect(answers.refusals().filter((refusal) => !refusals.includes(refusal))).toEqual([])
      expect(await service.end()).toBe(0)
      history.checkRows(await plantsIn(storedIn))
    },
    async [Symbol.asyncDispose]() {
      await service.kill()
      await Promise.all([load.stop(), health.stop()])
      if (!losesServer) await database[Symbol.asyncDispose]()
    },
  }
}

/** Collects how long recoveries took, and prints the longest after the tests. */
export function printLongestRecovery() {
  const tookMs: number[] = []
  afterAll(() =>
    console.log(`longest time to the first write: ${Math.round(Math.max(...tookMs))} ms of ${tookMs.length}`),
  )
  return { record: (ms: number) => void tookMs.push(ms) }
}

/** The plants of a database by their ids. */
export const plantsIn = (url: string): Promise<ReadonlyMap<number, PlantRow>> =>
  administer(url, async (sql) => {
    const rows: readonly (PlantRow & { readonly id: bigint })[] = await sql`select id, name, tag from plantstore.plants`
    return new Map(rows.map((row) => [Number(row.id), { ...row, id: Number(row.id) }]))
  })

interface Service {
  request(method: string, path: string): Promise<Response>
}
type Answers = ReturnType<typeof countAnswers>

/** Waits until writes are refused and `/readyz` says so. */
async function untilRefusing(service: Service, answers: Answers): Promise<void> {
  const refused = answers.refused()
  let readiness = ''
  await Promise.all([
    until('writes are refused', () => answers.refused() > refused),
    until('the service is not ready', async () => {
      readiness = await readinessOf(service)
      return readiness !== '200'
    }),
  ])
  expect(readiness).toMatch(/^503 5030[123] 1$/)
}

/** Waits until writes succeed and `/readyz` says so. Resolves to the time until the first write. */
async function untilStoring(service: Service, answers: Answers): Promise<number> {
  const beginMs = performance.now()
  const stored = answers.successes()
  await until('plants are stored again', () => answers.successes() > stored)
  const tookMs = performance.now() - beginMs
  await until('the service is ready again', async () => (await readinessOf(service)) === '200')
  const readyMs = performance.now() - beginMs
  expect(tookMs).toBeLessThan(RECOVERY_MAX_MS)
  expect(readyMs).toBeLessThan(RECOVERY_MAX_MS + READINESS_MAX_AGE_MS)
  await until('many plants are stored', () => answers.successes() >= stored + ENOUGH)
  return tookMs
}

/** The answer of `/readyz`: its status, and of a failure the code and `Retry-After`. */
async function readinessOf(service: Service): Promise<string> {
  const response = await service.request('GET', '/readyz')
  const body = JSON.parse(await response.text())
  return response.ok ? '200' : `${response.status} ${body.error} ${response.headers.get('retry-after')}`
}

/** Asks `/healthz` again and again. `stop` resolves to the statuses that it answered. */
function probeHealth(service: Service) {
  const statuses = new Set<number>()
  let isStopped = false
  const probe = async () => {
    while (!isStopped) {
      statuses.add((await service.request('GET', '/healthz')).status)
      await Bun.sleep(PROBE_PAUSE_MS)
    }
  }
  const probing = probe().catch(() => statuses.add(0))
  return {
    async stop(): Promise<number[]> {
      isStopped = true
      await probing
      return [...statuses]
    },
  }
}
