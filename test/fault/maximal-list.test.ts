import { Database } from 'bun:sqlite'
import { describe, expect } from 'bun:test'
import { LIST_MAX_BYTES } from '../../src/http/lists/pages.ts'
import { serve } from '../support/executable.ts'
import { administer, makeDatabase, POSTGRES_SERVER } from '../support/postgres.ts'
import { type Connection, openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { formatRequest } from './clients.ts'
import { serveOthers } from './other-clients.ts'
import { PROCESS_TOOLS, peakMib, residentMib } from './process.ts'
import { testLong } from './rounds.ts'
import { QUIET } from './test-database.ts'

const LISTS = 20
const WAIT_MAX_MS = 50
/** How much memory may grow by one list, and by all of them, because garbage is not collected after each list. */
const GROWTH_MAX_MIB = 64
const GROWTH_OF_ALL_MAX_MIB = 96

/** More plants than one list holds. */
const KINDS = [
  ['plants of 50 bytes', 200_000, 'Monstera deliciosa'],
  ['plants of 10 000 bytes', 2000, 'x'.repeat(10_000)],
  ['plants of 10 000 bytes, not in Latin-1', 2000, '€'.repeat(3333)],
] as const

const STORES = [
  { store: 'SQLite', requirements: [PROCESS_TOOLS], start: startOnSqlite },
  { store: 'PostgreSQL', requirements: [PROCESS_TOOLS, POSTGRES_SERVER], start: startOnPostgres },
]

for (const { store, requirements, start } of STORES) {
  describe.skipIf(lacks(...requirements)).each(KINDS)(`${store}, a list of LIST_MAX_BYTES of %s`, (_, plants, name) => {
    testLong('lets another user wait less than 50 ms, and memory grow by less than 64 MiB', async () => {
      await using service = await start(plants, name)
      const { pid, port } = service.server
      const other = await createTokenIn(service.database, 'other')
      using connection = await openConnection(port)
      const aloneMs = await longestWait(connection, other, Bun.sleep(1000))
      const residentBeforeMib = residentMib(pid)

      const besideMs: number[] = []
      const growthMib: number[] = []
      for (let count = 0; count < LISTS; count++) {
        const list = readList(service)
        besideMs.push(await longestWait(connection, other, list))
        expect(await list).toBeGreaterThan(LIST_MAX_BYTES * 0.99)
        growthMib.push(peakMib(pid) - residentBeforeMib)
      }

      // A busy machine makes some waits longer. A server that does not take turns makes all of them longer.
      const [leastMs, mostMs] = [Math.min(...besideMs), Math.max(...besideMs)]
      const [oneMib = 0, allMib = 0] = [growthMib.at(0), growthMib.at(-1)]
      console.log(
        `longest wait: ${aloneMs.toFixed(1)} ms alone, ${leastMs.toFixed(1)} to ${mostMs.toFixed(1)} ms beside a list`,
      )
      console.log(`memory: ${oneMib.toFixed(0)} MiB more after one list, ${allMib.toFixed(0)} MiB after ${LISTS}`)
      expect(leastMs).toBeLessThan(WAIT_MAX_MS)
      expect(oneMib).toBeLessThan(GROWTH_MAX_MIB)
      expect(allMib).toBeLessThan(GROWTH_OF_ALL_MAX_MIB)
    })
  })
}

async function startOnSqlite(plants: number, name: string) {
  const service = await serveOthers(plants)
  using db = new Database(service.database)
  db.run('pragma busy_timeout = 5000')
  db.run("update plants set name = ?1, tag = 'evergreen'", [name])
  return service
}

async function startOnPostgres(plants: number, name: string) {
  const database = await makeDatabase()
  const token = await createTokenIn(database.url)
  const sql = `insert into plantstore.plants (user_id, id, name, tag)
    select users.id, n, $2, 'evergreen' from plantstore.users, generate_series(1, $1::int8) n`
  await administer(database.url, (connection) => connection.unsafe(sql, [plants, name]))
  const server = await serve(database.url, QUIET)
  return {
    database: database.url,
    token,
    server,
    async [Symbol.asyncDispose]() {
      await server.kill()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Reads a list of any length. Resolves to the length of the answer. */
async function readList({ server, token }: Awaited<ReturnType<typeof startOnPostgres>>): Promise<number> {
  const answer = await server.request('GET', '/plants?limit=2147483647', { token })
  return (await answer.arrayBuffer()).byteLength
}

/** The longest wait for a short list until something is over. */
async function longestWait(connection: Connection, token: string, end: Promise<unknown>): Promise<number> {
  let isOver = false
  void end.finally(() => {
    isOver = true
  })
  let longestMs = 0
  while (!isOver) {
    const startMs = performance.now()
    expect((await connection.request(formatRequest('GET', '/plants?limit=20', token))).status).toBe(200)
    longestMs = Math.max(longestMs, performance.now() - startMs)
  }
  return longestMs
}
