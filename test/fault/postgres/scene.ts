import { expect } from 'bun:test'
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

/** Within what time writes succeed again once the database can be written. */
export const RECOVERY_MAX_MS = 1000
/** The long form measures on a machine of its own. */
const ADDED_MS = rounds(SLACK_MS, 0)
/** Of the result of a probe; see READINESS_MAX_AGE_MS. */
const READINESS_MAX_AGE_MS = 1000

/** Answers of success before a fault, at most, and those after it that show that all is well. */
const BEFORE_MAX = 1000
const ENOUGH = 200
const CONNECTIONS = 32
const LOOK_MS = 20

/** What a client may be told while the database is not there: never anything else than 503 with `Retry-After`. */
export const UNREACHABLE = '503 50302, Retry-After: 1'
export const BUSY = '503 50303, Retry-After: 1'
export const FULL = '503 50301, Retry-After: 1'

/** What there is in a round of a test on a database server that fails. */
export type Scene = Awaited<ReturnType<typeof setScene>>

interface SceneOptions {
  /** What the service is told instead of the URL of its database, as where there is a proxy on the way. */
  readonly by?: (url: string) => string
  /** What is said to the database once it is made. */
  readonly statement?: (database: string) => string
  /** Whether the server is gone when the round is over. */
  readonly isLeft?: boolean
}

/** A service on a new database of a server, under load until it is ended, whose probes are watched. */
export async function setScene(server: string, random: Random, options: SceneOptions = {}) {
  const { by = (url) => url, statement, isLeft = false } = options
  const database = await makeDatabase({ server, isEmpty: true })
  if (statement !== undefined) {
    await administer(server, (sql) => sql.unsafe(statement(database.name)).simple())
  }
  const token = await createTokenIn(database.url)
  const service = await serve(by(database.url), QUIET)
  const history = startHistory()
  const answers = countAnswers()
  const load = startLoad({
    url: service.url,
    token,
    history,
    random,
    connections: CONNECTIONS,
    onAnswer: answers.record,
  })
  const alive = watchAlive(service)
  await load.acknowledged(1 + random(BEFORE_MAX))

  const dispose = async () => {
    await service.kill()
    await Promise.all([load.stop(), alive.stop()])
    if (!isLeft) await database[Symbol.asyncDispose]()
  }
  return {
    database,
    token,
    service,
    history,
    answers,
    /** Waits until writes are refused and `/readyz` says so. */
    async untilRefusing(): Promise<void> {
      const refused = answers.refused()
      let ready = ''
      await Promise.all([
        until('writes are refused', () => answers.refused() > refused),
        until('the service is not ready', async () => {
          ready = await readiness(service)
          return ready !== '200'
        }),
      ])
      expect(ready).toMatch(/^503 5030[123] 1$/)
    },
    /** Waits until writes succeed and `/readyz` says so. Resolves to how long the first of both has taken. */
    async untilStoring(): Promise<number> {
      const beginMs = performance.now()
      const stored = answers.successes()
      await until('plants are stored again', () => answers.successes() > stored)
      const tookMs = performance.now() - beginMs
      await until('the service is ready again', async () => (await readiness(service)) === '200')
      const readyMs = performance.now() - beginMs
      expect(tookMs).toBeLessThan(RECOVERY_MAX_MS + ADDED_MS)
      expect(readyMs).toBeLessThan(RECOVERY_MAX_MS + READINESS_MAX_AGE_MS + ADDED_MS)
      await until('many plants are stored', () => answers.successes() >= stored + ENOUGH)
      return tookMs
    },
    /** Ends the load and the service, and compares what there is with what was answered. */
    async check(refusals: readonly string[], url = database.url): Promise<void> {
      await load.stop()
      expect(await alive.stop()).toEqual([200])
      expect(answers.refusals().filter((refusal) => !refusals.includes(refusal))).toEqual([])
      expect(await service.end()).toBe(0)
      history.checkRows(await plantsOn(url))
    },
    [Symbol.asyncDispose]: dispose,
  }
}

/** The plants of a database on a server, by their ids. */
export const plantsOn = (url: string): Promise<ReadonlyMap<number, PlantRow>> =>
  administer(url, async (sql) => {
    const rows: readonly (PlantRow & { readonly id: bigint })[] = await sql`select id, name, tag from plantstore.plants`
    return new Map(rows.map((row) => [Number(row.id), { ...row, id: Number(row.id) }]))
  })

interface Service {
  request(method: string, path: string): Promise<Response>
}

/** The answer of `/readyz`: its status, and if it is no success its code and `Retry-After`. */
async function readiness(service: Service): Promise<string> {
  const response = await service.request('GET', '/readyz')
  const body = JSON.parse(await response.text())
  return response.ok ? '200' : `${response.status} ${body.error} ${response.headers.get('retry-after')}`
}

/** Asks `/healthz` again and again. `stop` resolves to the statuses that there were. */
function watchAlive(service: Service) {
  const statuses = new Set<number>()
  let isStopped = false
  const watch = async () => {
    while (!isStopped) {
      statuses.add((await service.request('GET', '/healthz')).status)
      await Bun.sleep(LOOK_MS)
    }
  }
  const watching = watch().catch(() => statuses.add(0))
  return {
    async stop(): Promise<number[]> {
      isStopped = true
      await watching
      return [...statuses]
    },
  }
}
