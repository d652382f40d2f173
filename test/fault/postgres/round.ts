import { expect } from 'bun:test'
import { serve } from '../../support/executable.ts'
import { administer } from '../../support/postgres.ts'
import { type Cluster, type ClusterOptions, type Settings, startCluster } from '../../support/postgres-cluster.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import type { Random } from '../../support/random.ts'
import type { Requirement } from '../../support/requirement.ts'
import { SLACK_MS } from '../../support/slack.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL, type History, type PlantRow, type PlantRows, startHistory } from '../history.ts'
import { type LoadOptions, startLoad } from '../load.ts'
import { repeatRequest } from '../repeated-requests.ts'
import { rounds, testRounds } from '../rounds.ts'
import { QUIET, type Server } from '../test-database.ts'

/** How soon writes succeed after the database can be written again. `bun run check:long` has the machine for itself. */
const RECOVERY_MAX_MS = 1000 + rounds(SLACK_MS, 0)
/** The age of the result that `/readyz` answers; see READINESS_MAX_AGE_MS in src. */
const READINESS_MAX_AGE_MS = 1000

/** Successes before a fault at most, and successes after it that show that writes go on. */
const BEFORE_MAX = 1000
const ENOUGH = 200
const CONNECTIONS = 32
const PROBE_PAUSE_MS = 20

/** A fault of a PostgreSQL server. */
interface Fault {
  readonly name: string
  readonly short?: number
  readonly long: number
  readonly needs?: readonly Requirement[]
  readonly settings?: Settings
  /** Where and how the server is made. What it returns lives as long as the server. */
  readonly place?: () => ClusterOptions & Disposable
  /** Whether the service reaches the server by a proxy. */
  readonly byProxy?: boolean
  /** How long the service may need in addition until it writes again. */
  readonly waitMs?: number
  /** Refusals of writes besides 50302 and 50303. */
  readonly refusals?: readonly string[]
  /** Makes the server fail and brings it back. May return the server that has the plants then. */
  readonly run: (started: {
    readonly cluster: Cluster
    readonly proxy: ReturnType<typeof startPostgresProxy>
    readonly round: Round
    readonly random: Random
  }) => Promise<{ readonly url: string } | undefined>
}

/** Registers rounds of a fault: the service answers writes truly, by 503 if at all by an error, and stores again by itself. */
export function testFault(fault: Fault): void {
  const { name, short = 0, long, needs = [], byProxy, waitMs, refusals = [], run, ...made } = fault
  testRounds(
    `a service loses no acknowledged write, and stores no refused one, ${name}`,
    { short, long, needs: [OWN_POSTGRES, ...needs] },
    async (random) => {
      using placed = made.place?.()
      using cluster = await startCluster(made.settings, placed)
      using proxy = startPostgresProxy(cluster.url)
      await using round = await startRound(cluster.url, random, { waitMs, ...(byProxy && { by: proxy.by }) })
      const stored = await run({ cluster, proxy, round, random })
      await round.untilStoring()
      await round.check([FAILED_REFUSAL, BUSY_REFUSAL, ...refusals], stored?.url)
    },
  )
}

/** A service under load, whose database is about to fail. */
export type Round = Awaited<ReturnType<typeof startRound>>

interface RoundOptions {
  /** Returns the URL that the service gets. */
  readonly by?: (url: string) => string
  /** The user who has all the plants, and no other round of the same database. */
  readonly user?: string
  readonly load?: LoadOptions
  readonly waitMs?: number | undefined
}

/** Starts a service on a database without plants of its user, a load on it, and probes of `/healthz`. */
export async function startRound(
  database: string,
  random: Random,
  { by = (url) => url, user = 'me', load: options, waitMs = 0 }: RoundOptions = {},
) {
  const token = await createTokenIn(database, user)
  const service = await serve(by(database), QUIET)
  const history = startHistory()
  const load = startLoad({ url: service.url, token, history, random, connections: CONNECTIONS, ...options })
  const health = repeatRequest(service, '/healthz', undefined, PROBE_PAUSE_MS)
  await load.acknowledged(1 + random(BEFORE_MAX))
  return {
    token,
    service,
    history,
    untilRefusing: () => untilRefusing(service, history),
    untilStoring: () => untilStoring(service, history, RECOVERY_MAX_MS + waitMs),
    /** Ends the load and the service, and compares the stored plants with the answers. */
    async check(refusals: readonly string[], storedIn = database): Promise<void> {
      expect(load.ended()).toBe(0)
      await load.stop()
      expect(await health.stop()).toEqual([200])
      expect(history.refusals().filter((refusal) => !refusals.includes(refusal))).toEqual([])
      expect(await service.end()).toBe(0)
      history.checkRows(await plantsIn(storedIn, user))
    },
    async [Symbol.asyncDispose]() {
      await service.kill()
      await Promise.all([load.stop(), health.stop()])
    },
  }
}

/** The plants of a user by their ids. */
export const plantsIn = (url: string, user = 'me'): Promise<PlantRows> =>
  administer(url, async (sql) => {
    const rows: readonly (PlantRow & { readonly id: bigint })[] = await sql`
      select plants.id, plants.name, tag from plantstore.plants, plantstore.users
      where user_id = users.id and users.name = ${user}`
    return new Map(rows.map((row) => [Number(row.id), { ...row, id: Number(row.id) }]))
  })

/** Waits until writes are refused and `/readyz` says so. */
async function untilRefusing(service: Server, history: History): Promise<void> {
  const refused = history.errors()
  let readiness = ''
  await Promise.all([
    until('writes are refused', (see) => see(history.errors()) > refused),
    until('the service is not ready', async () => {
      readiness = await readinessOf(service)
      return readiness !== '200'
    }),
  ])
  expect(readiness).toMatch(/^503 5030[123] 1$/)
}

/** Waits until writes succeed and `/readyz` says so. Prints the time until the first write. */
async function untilStoring(service: Server, history: History, maxMs: number): Promise<void> {
  const beginMs = performance.now()
  const stored = history.counts().acknowledged
  await until('plants are stored again', (see) => see(history.counts()).acknowledged > stored)
  const tookMs = performance.now() - beginMs
  console.log(`time to the first write: ${Math.round(tookMs)} ms`)
  await until('the service is ready again', async (see) => see(await readinessOf(service)) === '200')
  const readyMs = performance.now() - beginMs
  expect(tookMs).toBeLessThan(maxMs)
  expect(readyMs).toBeLessThan(maxMs + READINESS_MAX_AGE_MS)
  await until('many plants are stored', (see) => see(history.counts()).acknowledged >= stored + ENOUGH)
}

/** The answer of `/readyz`: its status, and of a failure the code and `Retry-After`. */
async function readinessOf(service: Server): Promise<string> {
  const response = await service.request('GET', '/readyz')
  const body = JSON.parse(await response.text())
  return response.ok ? '200' : `${response.status} ${body.error} ${response.headers.get('retry-after')}`
}
