import { describe, expect } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { codeOf } from '../cli/support/service-client.ts'
import { type DatabaseKind, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import type { Random } from '../support/random.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { fillQuota } from './quota.ts'
import { rounds, testRounds } from './rounds.ts'
import { QUIET } from './test-database.ts'

const KINDS = [
  // A server on the same file follows a command at once.
  { kind: SQLITE, short: 1, seenWithinMs: 0, needs: [] },
  // The contract suite shows the same of PostgreSQL, without load and faster.
  { kind: POSTGRES, short: 0, seenWithinMs: TOKEN_CHANGES_SEEN_WITHIN_MS, needs: [POSTGRES_SERVER] },
]
/** Few, so that a busy machine still writes in time. */
const CONNECTIONS = 4
/** Answers that show that the clients go on. */
const ENOUGH = 50
/** Rotations, kills and blocks of a round, one after the other. */
const STEPS = rounds(1, 10)
/** Long, for a machine that is busy with other things. The clients change their token at a random moment of its first part. */
const OVERLAP = '4s'
const CHANGED_WITHIN_MS = 1000

/** Two servers on one database. Clients of user me write to one, and list at both, with the token that `use` has named last. */
async function startClients(kind: DatabaseKind, random: Random) {
  const place = await kind.make()
  const run = (...args: readonly string[]) => runPlantstore([...args, '--database', place.database])
  let token = await createTokenIn(place.database)
  const servers = [await serve(place.database, QUIET), await serve(place.database, QUIET)]
  const history = startHistory()
  const load = startLoad({
    ...{ url: servers[0]?.url ?? '', history, random, connections: CONNECTIONS },
    get token() {
      return token
    },
  })
  const lists = new Set<number>()
  let isStopped = false
  const listers = servers.map(async (server) => {
    while (!isStopped) lists.add(await codeOf(server, token))
  })
  return {
    database: place.database,
    run,
    servers,
    token: () => token,
    use(next: string) {
      token = next
    },
    /** Resolves once all clients have got more successes. */
    async goOn() {
      const before = load.answers()
      await until('plants are stored', () => load.answers() > before + ENOUGH)
    },
    /** Ends the clients and the servers. Throws if a request has failed. */
    async end() {
      isStopped = true
      await Promise.all([load.stop(), ...listers])
      expect([...lists, ...history.refusals()]).toEqual([200])
      expect(history.counts()).toMatchObject({ refused: 0, unknown: 0 })
      for (const server of servers) expect([await server.end(), server.stderr()]).toEqual([0, ''])
    },
    async [Symbol.asyncDispose]() {
      isStopped = true
      for (const server of servers) await server.kill()
      await place[Symbol.asyncDispose]()
    },
  }
}

describe.each(KINDS)('tokens of two servers under load, on $kind.name', ({ kind, short, seenWithinMs, needs }) => {
  testRounds('are rotated without a failed request', { short, long: 5, needs }, async (random) => {
    await using clients = await startClients(kind, random)
    for (let id = 1; id <= STEPS; id++) {
      const old = clients.token()
      const { stdout } = await clients.run('token', 'rotate', String(id), '--overlap', OVERLAP, '--json')
      const { token, oldEnds } = JSON.parse(stdout)
      await Bun.sleep(random(CHANGED_WITHIN_MS))
      clients.use(token)
      await clients.goOn()
      for (const server of clients.servers) {
        await until('the old token is refused', async () => (await codeOf(server, old)) === 40102)
        expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(oldEnds))
      }
    }
    await clients.end()
  })

  testRounds('of a blocked user are refused, and of no other', { short, long: 10, needs }, async (random) => {
    await using clients = await startClients(kind, random)
    const tokens = [await createTokenIn(clients.database, 'guest'), await createTokenIn(clients.database, 'guest')]
    const codes = () => Promise.all(clients.servers.flatMap((server) => tokens.map((token) => codeOf(server, token))))
    expect(await codes()).toEqual([200, 200, 200, 200])
    for (let step = 0; step < STEPS; step++) {
      for (const [command, code] of Object.entries({ block: 40102, unblock: 200 })) {
        expect((await clients.run('user', command, 'guest')).exitCode).toBe(0)
        await Bun.sleep(seenWithinMs)
        expect(await codes()).toEqual(Array(4).fill(code))
      }
      await clients.goOn()
    }
    await clients.end()
  })

  testRounds('are rotated whole or not at all by a killed command', { short, long: 20, needs }, async (random) => {
    await using clients = await startClients(kind, random)
    const first = clients.token()
    const startMs = performance.now()
    await clients.run('token', 'rotate', '1')
    const usualMs = performance.now() - startMs
    let last = 2
    let killed = 0
    for (let step = 0; step < STEPS || killed === 0; step++) {
      const args = ['token', 'rotate', String(last), '--json', '--database', clients.database]
      const { child, ended } = startProgram([...COMMAND, ...args])
      await Bun.sleep(random(usualMs))
      child.kill('SIGKILL')
      const { stdout } = await ended
      const tokens: { id: number; replacedBy: number | null; expires: string | null }[] = JSON.parse(
        (await clients.run('token', 'list', '--json')).stdout,
      )
      last = tokens.length
      // Each token is replaced by the next one and ends, but for the last one.
      const chain = tokens.map(({ id, replacedBy, expires }) => [id, replacedBy, expires !== null])
      expect(chain).toEqual(tokens.map((_, at) => [at + 1, at + 1 < last ? at + 2 : null, at + 1 < last]))
      if (stdout === '') killed++
      const active = stdout === '' ? [first] : [first, JSON.parse(stdout).token]
      for (const server of clients.servers) {
        for (const token of active) expect(await codeOf(server, token)).toBe(200)
      }
    }
    await clients.end()
  })
})

describe.each(KINDS)('the quota of plants of three servers, on $kind.name', ({ kind, needs }) => {
  testRounds('is kept by creates and deletes over 64 connections', { short: 1, long: 20, needs }, (random) =>
    fillQuota(kind, random),
  )
})
