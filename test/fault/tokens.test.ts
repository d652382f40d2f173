import { describe, expect } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { codeOf, codeOfAnswer } from '../cli/support/service-client.ts'
import { inBackground } from '../support/background.ts'
import { type DatabaseKind, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import type { Random } from '../support/random.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { startHistory } from './history.ts'
import { startLoad } from './load.ts'
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
/** How long a client waits after each answer, so that many go on for seconds without filling the processor. */
const THINK_MS = 10
/** Rotations, kills and blocks of a round, one after the other. */
const STEPS = rounds(1, 10)
/** A command that is killed at a random moment may have ended before. */
const STEPS_MAX = 100
/** Long, for a machine that is busy with other things. The clients change their token at a random moment of its first part. */
const OVERLAP = '4s'
const CHANGED_WITHIN_MS = 1000
/** Deletions of a round, one after the other. */
const DELETIONS = rounds(1, 10)

/** Two servers on one database. Clients of user me write to one, and list at both, with the token that `use` has named last. */
async function startClients(kind: DatabaseKind, random: Random) {
  const place = await kind.make()
  const run = (...args: readonly string[]) => runPlantstore([...args, '--database', place.database])
  let token = await createTokenIn(place.database)
  const servers = [await serve(place.database, QUIET), await serve(place.database, QUIET)]
  const history = startHistory()
  const load = startLoad({
    ...{ url: servers[0]?.url ?? '', history, random, connections: CONNECTIONS, thinkMs: THINK_MS },
    get token() {
      return token
    },
  })
  const lists = new Set<number>()
  let isStopped = false
  const listers = inBackground(
    servers.map(async (server) => {
      while (!isStopped) {
        lists.add(await codeOf(server, token))
        await Bun.sleep(THINK_MS)
      }
    }),
  )
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
      await until('plants are stored', (see) => see(load.answers()) > before + ENOUGH)
    },
    /** Ends the clients and the servers. Throws if a request has failed. */
    async end() {
      isStopped = true
      await Promise.all([load.stop(), listers])
      expect([...lists, ...history.failures()]).toEqual([200])
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
        await until('the old token is refused', async (see) => see(await codeOf(server, old)) === 40102)
        expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(oldEnds))
      }
    }
    await clients.end()
  })

  testRounds(
    'of a blocked user and a revoked one are refused, and no other',
    { short, long: 10, needs },
    async (random) => {
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
        const { id, token } = JSON.parse((await clients.run('token', 'create', '--user', 'me', '--json')).stdout)
        const asked = () => Promise.all(clients.servers.map((server) => codeOf(server, token)))
        expect(await asked()).toEqual([200, 200])
        expect((await clients.run('token', 'revoke', `${id}`)).exitCode).toBe(0)
        await Bun.sleep(seenWithinMs)
        expect(await asked()).toEqual([40102, 40102])
        await clients.goOn()
      }
      await clients.end()
    },
  )

  testRounds('are rotated whole or not at all by a killed command', { short, long: 20, needs }, async (random) => {
    await using clients = await startClients(kind, random)
    const first = clients.token()
    const startMs = performance.now()
    await clients.run('token', 'rotate', '1')
    const usualMs = performance.now() - startMs
    let last = 2
    let killed = 0
    for (let step = 0; step < STEPS || (killed === 0 && step < STEPS_MAX); step++) {
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
    expect(killed).toBeGreaterThan(0)
    await clients.end()
  })
})

type Interval = Readonly<Record<'startMs' | 'endMs', number>>
/** A request of a client for its plant, and the status of the answer or the code of its error. */
interface Operation extends Interval {
  readonly name: string
  readonly code: number
}

/** The answers that are right while the plant is there, and while it is not. */
const RIGHT: Readonly<Record<string, readonly [ifThere: number, ifNot: number]>> = {
  create: [40901, 200],
  get: [200, 40402],
  delete: [204, 40402],
}

/**
 * The first answer that no order explains in which each operation and each deletion of the user takes effect at one moment between
 * its start and its end (linearizability). The client sends one request after the other, and at first there is no plant.
 */
function findContradiction(operations: readonly Operation[], deletions: readonly Interval[]): Operation | undefined {
  /** For each number of deletions that may have taken effect: whether the plant is then there, or not. */
  let states = new Set(['0 false'])
  return operations.find(({ name, code, startMs, endMs }) => {
    const before = deletions.filter((each) => each.endMs < startMs).length
    const begun = deletions.filter((each) => each.startMs < endMs).length
    const next = new Set<string>()
    for (const state of states) {
      const [done = '', wasThere] = state.split(' ')
      for (let count = Math.max(before, Number(done)); count <= begun; count++) {
        const isThere = wasThere === 'true' && count === Number(done)
        // While the command runs, the user is blocked.
        if (code === 40102 && begun > before) next.add(`${count} ${isThere}`)
        else if (code === RIGHT[name]?.[isThere ? 0 : 1])
          next.add(`${count} ${name === 'create' || (isThere && name === 'get')}`)
      }
    }
    states = next
    return states.size === 0
  })
}

describe.each(KINDS)('JWTs, on $kind.name', ({ kind, short, needs }) => {
  testRounds(
    'see each answered write of the same server, also around deletions of their user',
    { short: 1 - short, long: 10, needs },
    async (random) => {
      await using place = await kind.make()
      await using issuer = await startIssuer()
      const provider = ['--jwt-issuer', issuer.issuer]
      await using server = await serve(place.database, [...QUIET, ...provider, '--jwt-audience', AUDIENCE])
      const token = await issuer.token()
      let creates = 0
      let isOver = false
      const send: Readonly<Record<string, (id: number) => Promise<Response>>> = {
        create: (id) => server.request('POST', '/plants', { token, body: { id, name: 'Fern' } }),
        get: (id) => server.request('GET', `/plants/${id}`, { token }),
        delete: (id) => server.request('DELETE', `/plants/${id}`, { token }),
      }
      const work = async (id: number) => {
        const operations: Operation[] = []
        for (; !isOver; await Bun.sleep(random(THINK_MS))) {
          const [name, request] = Object.entries(send)[random(3)] ?? []
          if (name === undefined || request === undefined) continue
          const startMs = performance.now()
          const code = await codeOfAnswer(request(id))
          operations.push({ name, code, startMs, endMs: performance.now() })
          if (name === 'create' && code === 200) creates++
        }
        return operations
      }
      const clients = inBackground(Array.from({ length: CONNECTIONS }, (_, id) => work(id)))
      const goOn = async () => {
        const before = creates
        await until('the user is made', (see) => see(creates) > before)
        await Bun.sleep(random(CHANGED_WITHIN_MS))
      }
      const deletions: Interval[] = []
      while (deletions.length < DELETIONS) {
        await goOn()
        const startMs = performance.now()
        const args = ['user', 'delete', '--subject', 'ada', '--yes', ...provider, '--database', place.database]
        expect((await runPlantstore(args)).stderr).toMatch(/^Deleted user /m)
        deletions.push({ startMs, endMs: performance.now() })
      }
      await goOn()
      isOver = true
      const all = await clients

      expect(all.flatMap((operations) => findContradiction(operations, deletions) ?? [])).toEqual([])
      console.log(`${all.flat().length} answers are linearizable around ${DELETIONS} deletions`)
      expect(await server.end()).toBe(0)
    },
  )
})
