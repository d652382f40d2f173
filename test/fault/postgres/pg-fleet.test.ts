import { expect } from 'bun:test'
import { startExecutable } from '../../support/executable.ts'
import { makeDatabase, POSTGRES_SERVER } from '../../support/postgres.ts'
import { freePort } from '../../support/postgres-system.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { startHistory } from '../history.ts'
import { startLoad } from '../load.ts'
import { testRounds } from '../rounds.ts'
import { QUIET } from '../test-database.ts'
import { HAPROXY, startHaproxy } from './haproxy.ts'
import { plantsIn } from './round.ts'

const COPIES = 3
const CONNECTIONS = 32
/** Answers before a copy is restarted. */
const ENOUGH = 200
/** The ids of plants that are listed right after they were stored begin here, above those of the history. */
const FIRST_LISTED_ID = 1_000_000
/** Longer than HAProxy takes to notice that a copy is not ready. */
const DRAIN_WAIT = '1s'

type Copy = Awaited<ReturnType<typeof startExecutable>>

testRounds(
  'three copies behind HAProxy fail no request while each is restarted, and show each write in the next list',
  { short: 0, long: 20, needs: [POSTGRES_SERVER, HAPROXY] },
  async (random) => {
    await using fleet = await startFleet()
    const { url, token, copies } = fleet
    const history = startHistory()
    const load = startLoad({ url, token, history, random, connections: CONNECTIONS })
    const seen = new Set<string>()
    let [id, isOver] = [FIRST_LISTED_ID, false]
    const reading = (async () => {
      while (!isOver) seen.add(await createAndList(url, token, id++))
    })().catch((error: unknown) => seen.add(String(error)))
    for (let index = 0; index < COPIES; index++) {
      await load.acknowledged(history.counts().acknowledged + ENOUGH)
      expect(await copies[index]?.end()).toBe(0)
      copies[index] = await fleet.start(index)
      await until('it is ready', async (see) => see(await copies[index]?.request('GET', '/readyz'))?.status === 200)
    }
    await load.acknowledged(history.counts().acknowledged + ENOUGH)
    await load.stop()
    isOver = true
    await reading

    expect([...seen]).toEqual(['200 {"name":"Fern"} 200 [{"name":"Fern"}]'])
    expect(history.counts()).toMatchObject({ refused: 0, unknown: 0 })
    const plants = await plantsIn(fleet.database)
    history.checkRows(new Map([...plants].filter(([id]) => id < FIRST_LISTED_ID)))
    console.log(`${history.writes().length} writes and ${id - FIRST_LISTED_ID} lists right after one, and none failed`)
  },
)

/** Starts three copies on one new database, and HAProxy, which asks each copy whether it is ready. */
async function startFleet() {
  const database = await makeDatabase({ isEmpty: true })
  const token = await createTokenIn(database.url)
  const ports = Array.from({ length: COPIES }, freePort)
  const start = (index: number) =>
    startExecutable([
      ...['serve', '--listen', `127.0.0.1:${ports[index]}`, '--database', database.url],
      ...['--drain-wait', DRAIN_WAIT, ...QUIET],
    ])
  const copies: Copy[] = []
  for (let index = 0; index < COPIES; index++) copies.push(await start(index))
  const proxy = await startHaproxy('haproxy-fleet.cfg', ports)
  return {
    url: `http://127.0.0.1:${proxy.port}`,
    database: database.url,
    token,
    copies,
    start,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      for (const copy of copies) await copy.kill()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Stores a plant and lists it. HAProxy gives each request to the next copy. Resolves to both answers. */
async function createAndList(url: string, token: string, id: number): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const created = await fetch(`${url}/plants`, { method: 'POST', headers, body: JSON.stringify({ id, name: 'Fern' }) })
  const listed = await fetch(`${url}/plants?after=${id - 1}&limit=1`, { headers })
  return `${created.status} ${await created.text()} ${listed.status} ${await listed.text()}`
}
