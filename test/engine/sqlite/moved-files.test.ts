import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { watchFiles } from '../../../src/engine/sqlite/files/moved-files.ts'
import { SHM, WAL } from '../../store/sqlite/files.ts'
import { makeFolder } from '../../support/folder.ts'

const LOSSES: Readonly<Record<string, (file: string, aside: string) => void>> = {
  deleted: (file) => rmSync(file),
  'moved away': renameSync,
  'moved away with its folder': (file, aside) => renameSync(dirname(file), aside),
  replaced: (file, aside) => {
    copyFileSync(file, aside)
    renameSync(aside, file)
  },
  'moved away, with a link to it in its place': (file, aside) => {
    renameSync(file, aside)
    symlinkSync(aside, file)
  },
}

/** A database with a WAL, in a folder of its own, and a path beside it that is free. */
function makeUsed() {
  const folder = makeFolder()
  const path = join(folder.path, 'data', 'plantstore.db')
  mkdirSync(dirname(path))
  const open = (): Database => {
    const db = new Database(path, { readwrite: true, create: true })
    db.run('pragma journal_mode = wal')
    db.run('create table if not exists texts (text)')
    return db
  }
  return { path, aside: join(folder.path, 'aside'), open, [Symbol.dispose]: folder[Symbol.dispose] }
}

describe.each([
  ['the database', ''],
  ['its WAL', WAL],
  ["the WAL's index", SHM],
])('%s', (_, end) => {
  test.each(
    Object.entries(LOSSES).flatMap(([name, lose]) => [
      [name, 'just now', Date.now, lose] as const,
      [name, 'long ago', () => Date.now() + 60_000, lose] as const,
    ]),
  )('counts as moved once it was %s, and the last change of its folder was %s', (_, _when, nowMs, lose) => {
    using used = makeUsed()
    const { opened, areMoved } = watchFiles(used.path, used.open, nowMs)
    opened.run('insert into texts values (1)')
    const before = [areMoved(), areMoved()]
    lose(used.path + end, used.aside)

    expect([...before, areMoved(), areMoved()]).toEqual([false, false, true, true])
    opened.close()
  })
})

test('files do not count as moved while other connections come and go, even one that opens at the same time', () => {
  using used = makeUsed()
  const earlier = used.open()
  const alone = watchFiles(used.path, used.open, () => Date.now() + 60_000)
  const together = watchFiles(used.path, () => [used.open(), used.open()] as const)
  const [first, second] = together.opened
  earlier.close()
  first.close()
  const later = Array.from({ length: 5 }, used.open)
  later[0]?.close()
  alone.opened.run('insert into texts values (1)')

  expect([alone.areMoved(), together.areMoved()]).toEqual([false, false])
  rmSync(used.path + WAL)
  expect([alone.areMoved(), together.areMoved()]).toEqual([true, true])
  for (const db of [alone.opened, second, ...later.slice(1)]) db.close()
})
