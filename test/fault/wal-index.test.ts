import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { copyFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { queryAll } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { lacks } from '../support/requirement.ts'
import { injectFault, killAtAnswer, STRACE } from '../support/strace.ts'
import { makeTestDatabase } from './test-database.ts'

const DISK_BYTES = 40 * 1024 ** 2
/** Frames that fit into a new WAL-index. The next frame makes it grow by 32 KiB (https://sqlite.org/walformat.html). */
const INDEXED_FRAMES = 4062
/** Room for some frames of 4 KiB, but not for more index. */
const ROOM_BYTES = 28 * 1024
const [WAL_HEADER_BYTES, FRAME_BYTES] = [32, 24 + 4096]
const PLANTS = 3
const FERN = { id: PLANTS + 1, name: 'Fern' }
/** A plant that takes several frames. */
const LARGE = { id: PLANTS + 1, name: 'x'.repeat(12_000) }

/** Writes that fail because the index cannot grow. `framesLeft` is how many frames fit into the index. */
const WRITES = [
  { name: 'a create', framesLeft: 0, method: 'POST', path: '/plants', sent: { body: FERN } },
  { name: 'a create with indexed frames', framesLeft: 2, method: 'POST', path: '/plants', sent: { body: LARGE } },
  { name: 'a delete', framesLeft: 0, method: 'DELETE', path: '/plants/1', sent: {} },
] as const

describe.skipIf(lacks(MOUNTS))('a disk with room for a write but not for the WAL-index', () => {
  test('makes a server refuse a create with 50301, store nothing, and go on', async () => {
    using db = await makeFullDatabase(0)
    await using server = await db.serve()
    db.disk.fillUp(ROOM_BYTES)
    const create = () => server.request('POST', '/plants', { token: db.token, body: FERN })

    const refused = await create()

    const { status, headers } = refused
    expect([status, headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toMatchObject({ error: 50301 })
    expectUnchanged(db.database)
    db.disk.makeRoom()
    expect((await create()).ok).toBe(true)
    expect(await server.end()).toBe(0)
  })

  test.skipIf(lacks(STRACE)).each(WRITES)('has nothing of $name when the client reads the answer', async (write) => {
    using db = await makeFullDatabase(write.framesLeft)
    await using server = await db.serve()
    db.disk.fillUp(ROOM_BYTES)
    await using strace = await killAtAnswer(server.pid)

    const cut = server.request(write.method, write.path, { token: db.token, ...write.sent })

    await expect(cut).rejects.toThrow()
    await server.ended()
    expect(await strace.answer()).toContain('"error":50301')
    expectUnchanged(db.database)
  })

  test.skipIf(lacks(STRACE)).each([
    // The first sync belongs to the create. The next one syncs the directory, and SQLite ignores its failure.
    ['full', '2+'],
    // The create is not synced.
    ['normal', '1+'],
  ])(
    'ends the server with 3 if the refused write cannot be overwritten durably, with --durability %s',
    async (durability, when) => {
      using db = await makeFullDatabase(0)
      await using server = await db.serve(['--durability', durability])
      db.disk.fillUp(ROOM_BYTES)
      await using _fault = await injectFault(server.pid, ['fsync', 'fdatasync'], `error=EIO:when=${when}`)

      const failed = await server.request('POST', '/plants', { token: db.token, body: FERN })

      expect([failed.status, await failed.json()]).toEqual([503, expect.objectContaining({ error: 50302 })])
      expect(await server.ended()).toBe(3)
    },
  )

  test.each([
    ['token create', ['token', 'create', '--user', 'other'], ''],
    ['import', ['import', '--user', 'me', '-'], '{"id":100,"name":"Fern"}\n'],
  ])('makes %s change nothing and exit with 3', async (_, args, stdin) => {
    using db = await makeFullDatabase(0)
    db.disk.fillUp(ROOM_BYTES)

    const { exitCode, stderr } = await runPlantstore([...args, '--database', db.database], { stdin })

    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/took no change|nothing was imported/)])
    expectUnchanged(db.database)
  })
})

/** A database with some plants on a disk of its own. A reader keeps its WAL, whose index has room for `framesLeft` frames. */
async function makeFullDatabase(framesLeft: number) {
  const disk = mountDisk(DISK_BYTES)
  const db = await makeTestDatabase({ folder: disk.path })
  addPlants(db.database, PLANTS)
  const reader = new Database(db.database)
  reader.run('begin')
  reader.prepare('select * from plants').values()
  growWal(db.database, INDEXED_FRAMES - framesLeft)
  return {
    ...db,
    disk,
    [Symbol.dispose]() {
      reader.close(true)
      disk[Symbol.dispose]()
    },
  }
}

/** Commits pages until the WAL has a number of frames. */
function growWal(database: string, frames: number): void {
  using db = new Database(database)
  db.run('pragma wal_autocheckpoint = 0')
  db.run('pragma synchronous = off')
  const [[id] = []] = db.prepare('pragma application_id').values()
  const countFrames = () => (statSync(`${database}-wal`).size - WAL_HEADER_BYTES) / FRAME_BYTES
  while (countFrames() < frames) db.run(`pragma application_id = ${id}`)
  expect(countFrames()).toBe(frames)
}

/** Expects what was there before the write in a copy of the database and its WAL, as the next start would find them. */
function expectUnchanged(database: string): void {
  using folder = makeFolder()
  const copy = join(folder.path, 'plantstore.db')
  for (const suffix of ['', '-wal']) copyFileSync(database + suffix, copy + suffix)
  expect(queryAll(copy, 'select id from plants order by id')).toEqual([[1n], [2n], [3n]])
  expect(queryAll(copy, 'select users.name, count(*) from users join tokens on user_id = users.id')).toEqual([
    ['me', 1n],
  ])
  expect(readdirSync(folder.path)).toContain('plantstore.db-wal')
}
