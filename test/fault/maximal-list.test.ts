import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { LIST_MAX_BYTES } from '../../src/http/lists/render-list.ts'
import { POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { serve } from '../support/executable.ts'
import { formatRequest } from '../support/paced-requests.ts'
import { administer, POSTGRES_SERVER } from '../support/postgres.ts'
import { PROCESS_TOOLS, peakMib, residentMib } from '../support/process.ts'
import { type Connection, openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
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

/** Gives user 1 plants with the ids from 1 on. */
async function fill(database: string, plants: number, name: string): Promise<void> {
  const rows = (table: string, ids: string) =>
    `insert into ${table} (user_id, id, name, tag) select 1, id, $2, 'evergreen' from ${ids}`
  if (database.includes('://'))
    return administer(database, async (sql) => {
      await sql.unsafe(rows('plantstore.plants', 'generate_series(1, $1::int8) id'), [plants, name])
    })
  using db = new Database(database)
  const series = 'with recursive series (id) as (select 1 union all select id + 1 from series where id < $1)'
  db.run(`${series} ${rows('plants', 'series')}`, [plants, name])
}

for (const kind of [SQLITE, POSTGRES]) {
  testLong.skipIf(lacks(PROCESS_TOOLS, ...(kind === POSTGRES ? [POSTGRES_SERVER] : []))).each(KINDS)(
    `${kind.name}, a list of LIST_MAX_BYTES of %s lets another user wait less than 50 ms, and memory grow by less than 64 MiB`,
    async (_, plants, name) => {
      await using made = await kind.make()
      const [token, other] = [await createTokenIn(made.database), await createTokenIn(made.database, 'other')]
      await fill(made.database, plants, name)
      await using server = await serve(made.database, QUIET)
      const { pid, port } = server
      using connection = await openConnection(port)
      const aloneMs = await longestWait(connection, other, Bun.sleep(1000))
      const residentBeforeMib = residentMib(pid)

      const besideMs: number[] = []
      const growthMib: number[] = []
      for (let count = 0; count < LISTS; count++) {
        const answer = server.request('GET', '/plants?limit=2147483647', { token })
        const list = answer.then((each) => each.arrayBuffer())
        besideMs.push(await longestWait(connection, other, list))
        expect((await list).byteLength).toBeGreaterThan(LIST_MAX_BYTES * 0.99)
        growthMib.push(peakMib(pid) - residentBeforeMib)
      }

      // A busy machine makes some waits longer. A server that does not take turns makes all of them longer.
      const leastMs = Math.min(...besideMs)
      console.log(`longest wait: ${aloneMs.toFixed(1)} ms alone, ${leastMs.toFixed(1)} ms or more beside a list`)
      console.log(`memory, in MiB more after each list: ${growthMib.map(Math.round).join(', ')}`)
      expect(leastMs).toBeLessThan(WAIT_MAX_MS)
      expect(growthMib[0]).toBeLessThan(GROWTH_MAX_MIB)
      expect(growthMib.at(-1)).toBeLessThan(GROWTH_OF_ALL_MAX_MIB)
    },
  )
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
    expect(await connection.request(formatRequest('GET', '/plants?limit=20', token))).toMatchObject({ status: 200 })
    longestMs = Math.max(longestMs, performance.now() - startMs)
  }
  return longestMs
}
