import type { Database } from 'bun:sqlite'
import { closeSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ConflictRule, OwnedPlant } from '../../../domain/transfer.ts'
import { openDatabase } from '../connection.ts'
import { toAppError } from '../errors.ts'

/** A plant that was read from a line. */
export interface Line extends OwnedPlant {
  readonly line: number
}

/** Memory that a staging table takes, at most, however much is in it: SQLite counts it in KiB. */
const CACHE_KIB = 64 * 1024

/** Length of text at which a batch that is read ends. */
const BATCH_TEXT_LENGTH = 1024 * 1024

interface Row {
  readonly line: bigint
  readonly user: string
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
}

/** Plants that were read and are not imported yet. */
export type StagingTable = ReturnType<typeof openStagingTable>

/**
 * Keeps plants on disk until all of them have been read, in a file in this directory that has no name, so that nothing is
 * left of it when the process ends, however it does. Of plants with one user and id it keeps one: with `replace` what came
 * last, else what came first. What fails on that disk fails as the store does.
 */
export function openStagingTable(directory: string, rule: ConflictRule) {
  const path = join(directory, `plantstore-import-${crypto.randomUUID()}`)
  const attempt = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      throw toAppError(error, { duringWrite: false, path })
    }
  }
  const db = attempt(() => openNameless(path))
  const insert = db.prepare<unknown, [string, bigint, number, string, string | null]>(
    'insert into lines (user, id, line, name, tag) values (?1, ?2, ?3, ?4, ?5) on conflict do nothing',
  )
  const update = db.prepare<unknown, [string, bigint, string, string | null]>(
    'update lines set name = ?3, tag = ?4 where user = ?1 and id = ?2',
  )
  const selectLine = db.prepare<unknown, [string, bigint]>('select line from lines where user = ?1 and id = ?2')
  const select = db.prepare<Row, [string, bigint, number]>(
    'select line, user, id, name, tag from lines where (user, id) > (?1, ?2) order by user, id limit ?3',
  )

  return {
    directory,
    /** Keeps a plant. Returns the line of the one that has its user and id already, if there is one. */
    add: ({ line, user, id, name, tag }: Line): number | undefined =>
      attempt(() => {
        if (insert.run(user, id, line, name, tag ?? null).changes > 0) return undefined
        if (rule === 'replace') update.run(user, id, name, tag ?? null)
        const [[first] = []] = selectLine.values(user, id)
        return Number(first)
      }),
    /**
     * The next plants after one by user and id, as they are stored: what is stored in another order takes many times as long.
     * Fewer where their text is long, none at the end.
     */
    read: (after: OwnedPlant | undefined, limit: number): readonly Line[] =>
      attempt(() => {
        const lines: Line[] = []
        let length = 0
        // No user has an empty name.
        for (const row of select.iterate(after?.user ?? '', after?.id ?? 0n, limit)) {
          const { line, user, id, name, tag } = row
          lines.push({ line: Number(line), user, id, name, ...(tag !== null && { tag }) })
          length += name.length + (tag?.length ?? 0)
          if (length >= BATCH_TEXT_LENGTH) break
        }
        return lines
      }),
    [Symbol.dispose]: () => db.close(true),
  }
}

/** A database that nothing is left of when it is closed, in a transaction that nobody ends. */
function openNameless(path: string): Database {
  closeSync(openSync(path, 'wx', 0o600))
  const db = openDatabase(path, { readwrite: true, safeIntegers: true, strict: true })
  // SQLite has it open.
  rmSync(path)
  db.run('pragma locking_mode = exclusive')
  db.run('pragma journal_mode = memory')
  db.run('pragma synchronous = off')
  db.run(`pragma cache_size = -${CACHE_KIB}`)
  db.run(`create table lines (
      user text not null, id integer not null, line integer not null, name text not null, tag text,
      primary key (user, id)
    ) strict, without rowid`)
  db.run('begin')
  return db
}
