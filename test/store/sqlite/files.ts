import { Database } from 'bun:sqlite'
import { closeSync, cpSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../../src/domain/store.ts'
import { openReader, openWriteConnection } from '../../../src/engine/sqlite/driver.ts'
import { createFile } from '../../../src/engine/sqlite/files/file-system.ts'
import { AppError } from '../../../src/error.ts'
import type { OpenOptions } from '../../../src/store/database.ts'
import { openStore } from '../../../src/store/open.ts'
import { makeFolder } from '../../support/folder.ts'
import { asObject, createUser } from '../fixtures.ts'

/** The endings of the files beside a database. */
export const WAL = '-wal'
export const SHM = '-shm'

/** A folder, and the path of a database in it that does not exist yet. */
export function makeDatabaseFolder() {
  const folder = makeFolder()
  return { folder: folder.path, path: join(folder.path, 'plantstore.db'), [Symbol.dispose]: folder[Symbol.dispose] }
}

/** A store that is closed at the end, with the failures that it reported. */
export async function openForTest(path: string, options: OpenOptions = {}) {
  const failures: ReturnType<typeof asObject>[] = []
  const store = await openStore(path, (failure) => failures.push(asObject(failure)), options)
  let isClosed = false
  const close = async () => {
    if (isClosed) return
    isClosed = true
    await store.close()
  }
  return { store, failures, close, [Symbol.asyncDispose]: close }
}

/** A new store with user `me`, in a folder of its own. */
export async function openWithUser(options: OpenOptions = {}) {
  const files = makeDatabaseFolder()
  const opened = await openForTest(files.path, options)
  return {
    ...opened,
    path: files.path,
    folder: files.folder,
    user: await createUser(opened.store, 'me'),
    async [Symbol.asyncDispose]() {
      await opened.close()
      files[Symbol.dispose]()
    },
  }
}

/** The message with which a path is refused. Rejects if it is not refused. */
export async function refusalOf(path: string): Promise<string> {
  const opened = await openForTest(path).catch((reason: unknown) => reason)
  if (opened instanceof AppError && opened.kind === 'store_unusable') return opened.message
  if (opened instanceof Error) throw opened
  throw new Error('it was opened')
}

/** Makes an empty file, and opens the connection of a store that writes to it. */
export function makeWithWriter(path: string): Database {
  createFile(path)
  return openWriteConnection(path, 'normal')
}

/** Makes a closed database of several pages: a user with 20 large plants. */
export async function makeDatabase(path: string): Promise<void> {
  await using opened = await openForTest(path)
  const user = await createUser(opened.store, 'me')
  await createPlants(opened.store, user, 20)
}

/** Creates large plants with the ids from 0. */
export async function createPlants(store: Store, user: number, count: number): Promise<void> {
  for (let id = 0; id < count; id++) await store.createPlant(user, { id: BigInt(id), name: 'Fern '.repeat(200) })
}

/** Runs statements as another program. */
export function runSql(path: string, ...statements: readonly string[]): void {
  using db = new Database(path, { readwrite: true, create: true })
  db.run('pragma busy_timeout = 5000')
  for (const statement of statements) db.run(statement)
}

/** Runs statements, and leaves the files as a killed program does: the statements are in the WAL. */
export function runSqlAndDie(path: string, ...statements: readonly string[]): void {
  using scratch = makeDatabaseFolder()
  using db = new Database(scratch.path, { readwrite: true, create: true })
  for (const statement of ['pragma journal_mode = wal', 'pragma wal_autocheckpoint = 0', ...statements])
    db.run(statement)
  copyAsKilled(scratch.path, path)
}

/** Copies a database in use as a killed process leaves it, but without the WAL-index. */
export function copyAsKilled(from: string, to: string): void {
  cpSync(from, to)
  cpSync(from + WAL, to + WAL)
}

/** The rows of a query on a connection of its own, which waits for locks. */
export function queryAll(path: string, query: string): unknown[][] {
  using db = openReader(path)
  return db.prepare(query).values()
}

/** Overwrites bytes in the middle of a file. */
export function overwrite(path: string, position: number, bytes: Uint8Array): void {
  const file = openSync(path, 'r+')
  try {
    writeSync(file, bytes, 0, bytes.length, position)
  } finally {
    closeSync(file)
  }
}

/** Damages the root page of a table. */
export function damageTable(path: string, table: string): void {
  const [[rootPage] = []] = queryAll(path, `select rootpage from sqlite_schema where name = '${table}'`)
  const [[pageBytes] = []] = queryAll(path, 'pragma page_size')
  overwrite(path, (Number(rootPage) - 1) * Number(pageBytes), new Uint8Array(Number(pageBytes)).fill(0xa5))
}

/** The content of a folder: the name of each file, and the hash of its bytes. */
export function snapshot(folder: string): Record<string, string> {
  const files = readdirSync(folder, { withFileTypes: true }).sort((a, b) => a.name.localeCompare(b.name))
  const hashOf = (name: string) => Bun.SHA256.hash(readFileSync(join(folder, name)), 'hex')
  return Object.fromEntries(files.map((file) => [file.name, file.isFile() ? hashOf(file.name) : 'a folder']))
}
