import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { openStore } from '../../../src/store/open.ts'
import { createUser } from '../../store/fixtures.ts'
import { IS_LONG } from '../../support/long.ts'
import { administer } from '../../support/postgres.ts'
import { runProgram } from '../../support/program.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL } from '../history.ts'
import { testRounds } from '../rounds.ts'
import { CITUS, startCitus } from './citus.ts'
import { startRound } from './round.ts'

const PROJECT = join(import.meta.dir, '../../..')
const SUITES = ['./test/store/postgres/contract.test.ts', './test/http']
/** Citus takes ten times as long for a write. */
const PROPERTY_RUNS = '20'
/** The coordinator knows the size of its own files alone. */
const UNSUPPORTED = /measure > shows that the database grows with the plants/

test.skipIf(!IS_LONG || lacks(CITUS))(
  'the tests of the store and over the wire pass on Citus with plants distributed by user',
  async () => {
    using citus = await startCitus()
    const { url } = citus.coordinator
    const databases = () => administer(url, (sql) => sql`select datname from pg_database`.values())
    const before = await databases()
    const env = {
      ...process.env,
      TEST_POSTGRES: url,
      TEST_FREE_DATABASES: citus.urls.join(' '),
      TEST_EXECUTABLE: undefined,
      FAULT_LONG: '',
      PROPERTY_RUNS,
    }

    const { stderr } = await runProgram(
      [process.execPath, 'test', '--timeout', '300000', '-t', ', PostgreSQL', ...SUITES],
      { cwd: PROJECT, env },
    )

    for (const line of stderr.split('\n').filter((each) => /^(?:error:|\(fail\)| *\d+ pass)/.test(each)))
      console.log(line)
    const failed = [...stderr.matchAll(/^\(fail\) (.*?)(?: \[.*)?$/gm)].map(([, title]) => title)
    expect(failed.filter((title) => !UNSUPPORTED.test(title ?? ''))).toEqual([])
    expect(stderr).toMatch(/^ [1-9]\d+ pass$/m)
    // No test has made a database that is not distributed.
    expect(await databases()).toEqual(before)
  },
)

test.skipIf(!IS_LONG || lacks(CITUS))(
  'puts and deletes of three servers end in no deadlock on Citus, which locks its shards, too',
  async () => {
    using citus = await startCitus()
    const open = () => openStore(citus.urls[0] ?? '', () => {}, { isServer: true })
    const stores = await Promise.all([open(), open(), open()])
    const [store] = stores
    const users: UserId[] = []
    for (const name of 'abcdefgh') users.push(await createUser(store, name))
    const plant = { id: 1n, name: 'Fern' }
    const results = new Set<unknown>()
    const writeAll = async (each: Store, index: number) => {
      // A put of few users has a lock of some shards, and waits for those of the others.
      for (let round = 0; round < 60; round++) {
        const isPut = (index + round) % 2 === 0
        const first = (index + round) % 6
        const write = (user: UserId): Promise<unknown> =>
          isPut ? each.putPlant(user, plant) : each.deletePlant(user, plant.id)
        const settled = await Promise.allSettled(users.slice(first, first + 3).map(write))
        for (const each of settled) if (each.status === 'fulfilled') results.add(each.value)
      }
    }

    await Promise.all(stores.map(writeAll))

    // Plants were made, replaced and deleted.
    expect(results).toEqual(new Set([true, false, undefined]))
    expect(citus.deadlocks()).toEqual([])
    for (const each of stores) await each.close()
  },
)

for (const stopped of ['a worker', 'the coordinator'] as const) {
  testRounds(
    `a service loses no acknowledged write while ${stopped} of Citus is restarted`,
    { short: 0, long: 10, needs: [CITUS] },
    async (random) => {
      using citus = await startCitus()
      const { coordinator, workers } = citus
      await using round = await startRound(citus.urls[0] ?? '', random)
      const server = stopped === 'a worker' ? workers[random(workers.length)] : coordinator
      server?.stop(random(2) === 0 ? 'fast' : 'immediate')
      await round.untilRefusing()
      server?.start()
      await round.untilStoring()
      await until('Citus has committed or rolled back all that was prepared', citus.hasNothingPrepared)
      await round.check([FAILED_REFUSAL, BUSY_REFUSAL])
    },
  )
}
