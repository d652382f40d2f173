import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { makeDatabase, makeDatabaseFolder, openForTest, overwrite, refusalOf, runSql, snapshot, WAL } from './files.ts'

const PAGE_BYTES = 4096
const SECTOR_BYTES = 512
/** The position of the application id (https://sqlite.org/fileformat.html#the_database_header). */
const APPLICATION_ID_OFFSET = 68
const JOURNAL_MAGIC = Buffer.from('d9d505f920a163d7', 'hex')
const JOURNAL = '-journal'

/**
 * A rollback journal without pages, of a database that had so many pages before
 * (https://sqlite.org/fileformat.html#the_rollback_journal).
 */
function journalOf(pagesBefore: number): Buffer {
  const header = Buffer.alloc(SECTOR_BYTES)
  JOURNAL_MAGIC.copy(header)
  header.writeUInt32BE(pagesBefore, 16)
  header.writeUInt32BE(SECTOR_BYTES, 20)
  header.writeUInt32BE(PAGE_BYTES, 24)
  return header
}

const zeros = (path: string) => writeFileSync(path, new Uint8Array(PAGE_BYTES))
const page = (path: string) => runSql(path, 'pragma journal_mode = wal')

describe('a database whose first write was cut by a power loss opens as a new one', () => {
  test.each<[string, (path: string) => void, Uint8Array | undefined]>([
    ['if nothing of the write is on disk', zeros, undefined],
    ['if all of the write is on disk', page, undefined],
    ['if all of the write is on disk, with a new WAL', page, new Uint8Array(32)],
  ])('%s', async (_, make, wal) => {
    using files = makeDatabaseFolder()
    make(files.path)
    writeFileSync(files.path + JOURNAL, journalOf(0))
    if (wal !== undefined) writeFileSync(files.path + WAL, wal)

    await using opened = await openForTest(files.path)

    expect(await opened.store.hasTokens()).toBe(false)
    expect(await opened.store.checkIntegrity()).toEqual([])
  })
})

describe('a file beside a rollback journal is refused and stays unchanged', () => {
  test.each<[string, (path: string) => unknown, number, RegExp]>([
    ['a text file', (path) => writeFileSync(path, 'Fern\n'.repeat(1000)), 0, /\.db is not a database\.$/],
    ['a file of zeros that had pages before', zeros, 1, /\.db is not a database\.$/],
    ['a database of another application', makeForeign, 0, /\.db belongs to another application: /],
  ])('%s', async (_, make, pagesBefore, message) => {
    using files = makeDatabaseFolder()
    await make(files.path)
    writeFileSync(files.path + JOURNAL, journalOf(pagesBefore))
    const before = snapshot(files.folder)

    expect(await refusalOf(files.path)).toMatch(message)
    expect(snapshot(files.folder)).toEqual(before)
  })
})

async function makeForeign(path: string): Promise<void> {
  await makeDatabase(path)
  overwrite(path, APPLICATION_ID_OFFSET, Buffer.from('else'))
}
