import { describe, expect, test } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { nextTurn } from '../../../src/domain/next-turn.ts'
import { checkpoints } from '../../../src/store/sqlite/checkpoints.ts'
import { openWriter } from '../../../src/store/sqlite/connection.ts'
import { watchWalIndex } from '../../../src/store/sqlite/versions/wal-index.ts'
import { runPlantstore, serve } from '../../support/executable.ts'
import { createUser, listIds, newToken } from '../fixtures.ts'
import { makeDatabaseFolder, openForTest, WAL } from './files.ts'

/** "A few MiB": without checkpoints each of these tests would make it several times as large. */
const WAL_MAX_BYTES = 8 * 1024 ** 2

describe('the WAL stays small', () => {
  test.each([
    ['small', 5000, 'Fern'],
    ['as large as a body may be', 500, 'x'.repeat(64_000)],
  ])('over many plants that are %s', async (_, count, name) => {
    using files = makeDatabaseFolder()
    await using opened = await openForTest(files.path)
    const user = await createUser(opened.store, 'me')
    let largestBytes = 0
    let writtenBytes = 0

    for (let id = 0; id < count; id++) {
      await opened.store.createPlant(user, { id: BigInt(id), name })
      writtenBytes += Math.max(4096, name.length)
      largestBytes = Math.max(largestBytes, statSync(files.path + WAL).size)
      // As between two requests.
      await nextTurn()
    }

    expect(writtenBytes).toBeGreaterThan(2 * WAL_MAX_BYTES)
    expect(largestBytes).toBeLessThan(WAL_MAX_BYTES)
    expect(await listIds(opened.store, user)).toHaveLength(count)
  })
})

test.each([
  ['in memory', watchWalIndex],
  ['by SQL, where the system does not say where that memory is', () => undefined],
])('the WAL is looked at %s, and is begun anew once it has grown', (_, watch) => {
  using files = makeDatabaseFolder()
  using writer = openWriter(files.path, 'full')
  writer.run('create table texts (text text)')
  const wal = checkpoints(writer, watch(files.path), (error) => error)
  let largestBytes = 0

  for (let count = 0; count < 3000; count++) {
    writer.run('insert into texts values (hex(zeroblob(4000)))')
    wal.runIfDue()
    largestBytes = Math.max(largestBytes, statSync(files.path + WAL).size)
  }

  expect(largestBytes).toBeGreaterThan(WAL_MAX_BYTES / 2)
  expect(largestBytes).toBeLessThan(WAL_MAX_BYTES)
})

describe('a database that was closed is one file', () => {
  test('whatever was done with it', async () => {
    using files = makeDatabaseFolder()
    const opened = await openForTest(files.path)
    const user = await createUser(opened.store, 'me')
    await opened.store.createPlant(user, { id: 1n, name: 'Fern' })
    await listIds(opened.store, user)
    await opened.store.checkReady()
    await opened.store.checkIntegrity()
    await opened.store.deletePlant(user, 1n)
    await opened.store.listUsers()
    await opened.store.deleteUser('me')

    await opened.close()

    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
  })

  test('after the last of several openings, in whichever order', async () => {
    using files = makeDatabaseFolder()
    const first = await openForTest(files.path)
    const second = await openForTest(files.path)
    await first.store.createToken(newToken('me'))

    await first.close()
    expect((await second.store.listUsers()).map(({ name }) => name)).toEqual(['me'])
    await second.store.createToken(newToken('you'))
    await second.close()

    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
    await using opened = await openForTest(files.path)
    expect((await opened.store.listUsers()).map(({ name }) => name)).toEqual(['me', 'you'])
  })

  test('after a process was killed, another one opened it and closed it', async () => {
    using files = makeDatabaseFolder()
    const server = await serve(files.path)
    await server.kill()
    expect(readdirSync(files.folder).length).toBeGreaterThan(1)

    await (await openForTest(files.path)).close()

    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
  })

  test('not while a server has it open: a command that closes leaves the server what it needs', async () => {
    using files = makeDatabaseFolder()
    await using opened = await openForTest(files.path)
    const { exitCode } = await runPlantstore(['token', 'create', '--user', 'me', '--database', files.path])

    expect(exitCode).toBe(0)
    expect(readdirSync(files.folder).sort()).toEqual(['plantstore.db', 'plantstore.db-shm', 'plantstore.db-wal'])
    expect(await opened.store.listUsers()).toMatchObject([{ name: 'me', tokens: 1 }])
    const user = (await opened.store.listTokens())[0]?.userId ?? 0
    await opened.store.createPlant(user, { id: 1n, name: 'Fern' })
    expect(await listIds(opened.store, user)).toEqual([1n])
  })
})
