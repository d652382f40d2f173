import { constants } from 'bun:sqlite'
import { existsSync, renameSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { storeUnusable } from '../../errors.ts'
import { TABLES } from '../../tools/contents.ts'
import { openDatabase } from '../connection.ts'
import { fileIdentity } from '../files/file-identity.ts'
import { isUnfinishedCopy } from '../files/headers.ts'
import { lockAlone } from '../files/lock.ts'
import { createFile } from '../files/new-file.ts'
import { partialPath, SIDE_FILES, syncDirectory } from '../files/partial-files.ts'
import { inspect } from '../files/preflight.ts'
import { UNFINISHED_ID } from '../migrate.ts'

/** A database without tables, whose application id says that it is an unfinished copy. It is locked until `dispose`. */
interface Mark extends Disposable {
  readonly identity: string
}

/** Gives the name of the database to a mark, durably. Throws `store_unusable` if there is a database that is not empty. */
export function placeMark(path: string): Mark {
  if (!isUnfinishedCopy(path)) {
    requireEmpty(path)
    const made = partialPath(path)
    makeMark(made, path)
    renameSync(made, path)
    syncDirectory(dirname(path))
  }
  const identity = fileIdentity(path)
  const locked = lockAlone(path, 'it may be another plantstore copy: let it end')
  if (fileIdentity(path) !== identity) {
    locked[Symbol.dispose]()
    throw storeUnusable(`The database ${path} was made by another process meanwhile.`)
  }
  return { identity, [Symbol.dispose]: locked[Symbol.dispose] }
}

function makeMark(path: string, replaced: string): void {
  createFile(path, replaced)
  const db = openDatabase(path, constants.SQLITE_OPEN_READWRITE)
  try {
    db.run('pragma synchronous = full')
    db.run('pragma fullfsync = 1')
    db.run(`pragma application_id = ${UNFINISHED_ID}`)
  } finally {
    db.close(true)
  }
}

/** Throws `store_unusable` unless there is no store, or an empty one. Removes the side files of an empty one. */
function requireEmpty(path: string): void {
  if (inspect(path) && statSync(path).size > 0) {
    using locked = lockAlone(path, 'end it')
    const hasTables = locked.db.prepare('select name from sqlite_schema').values().length > 0
    const anyRow = TABLES.map((table) => `select 1 from ${table}`).join(' union all ')
    if (hasTables && locked.db.prepare(`${anyRow} limit 1`).values().length > 0) {
      throw storeUnusable(`The database ${path} is not empty: name another one.`)
    }
    locked.release()
  }
  const beside = SIDE_FILES.map((name) => path + name).filter((file) => existsSync(file))
  if (beside.length > 0) throw storeUnusable(`${beside.join(' and ')} would be taken for a part of it: move that away.`)
}
