import type { Database } from 'bun:sqlite'
import type { AppError } from '../../../domain/error.ts'
import { type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import { openDatabase } from '../connection.ts'
import { MIGRATIONS } from '../migrate.ts'

/**
 * The table in a backup that names its database. A database in use has no such table, because `restore` leaves it out, and so
 * does a backup of a backup.
 */
export const BACKUP_OF = 'backup_of'

/** The table or index of another program in a database of ours. */
export interface ForeignObject {
  readonly type: string
  readonly name: string
}

/** A row of `sqlite_schema` (https://sqlite.org/schematab.html). Null becomes '', and other values than texts `NO_TEXT`. */
type Definition = readonly [type: string, name: string, table: string, sql: string]
const NO_TEXT = '\0'

/**
 * Objects that no message lists: the record of a backup, and the tables of Litestream, whose columns have no expressions.
 * `restore` keeps the latter.
 */
const UNLISTED = [
  /^CREATE TABLE _litestream_\w+ \([\w\s,]*\)$/,
  new RegExp(`^CREATE TABLE ${BACKUP_OF} \\(path text not null\\) strict$`),
]
/** An index that cannot refuse a row: it is not unique, and has no expression, condition or collation. */
const PLAIN_INDEX = /^CREATE INDEX [^(]+\((?:(?!collate)[\w\s,])*\)$/i
const TYPES = ['table', 'index', 'trigger', 'view']
/** A message lists at most so many objects, and so many characters of each name. */
const LISTED_MAX = 10
const LISTED_NAME_LENGTH = 100

/**
 * Compares a schema with the one that our migrations up to its version make. Throws `store_unusable` if another program has
 * changed it in a way that can change answers: one of our definitions is changed or missing, or there is a trigger, a view, an
 * index of our tables that can refuse a row, or a foreign key to our tables. Returns the tables and indexes of other programs.
 */
export function refuseChangedSchema(role: FileRole, path: string, db: Database, version: number) {
  const { expected, names } = ownDefinitions(version)
  const found = definitionsIn(db)
  const isOwn = (name: string) => names.has(name.toLowerCase())
  const missing = without(expected, found)
  const added = without(found, expected)
  const harmful = added.filter((definition) => !isHarmless(definition, isOwn, db))
  if (missing.length > 0 || harmful.length > 0) throw changed(role, path, [...missing, ...harmful])
  return added
    .filter(([, name, , sql]) => !name.startsWith('sqlite_') && !UNLISTED.some((pattern) => pattern.test(sql)))
    .map(([type, name]) => ({ type, name }))
}

/** Objects in a message, like `table "notes", index "by_name"`. */
export function listed(objects: readonly ForeignObject[]): string {
  const texts = objects.map(({ type, name }) => `${type} ${JSON.stringify(name.slice(0, LISTED_NAME_LENGTH))}`)
  const more = texts.splice(LISTED_MAX).length
  return [...texts, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

/**
 * Whether an object of another program cannot change an answer. SQLite compares the type, name and table of a definition with
 * its SQL, but ignores case and everything after a NUL. So only a lower-case `table` or `index` without NUL passes here.
 */
function isHarmless([type, name, table, sql]: Definition, isOwn: (name: string) => boolean, db: Database): boolean {
  if (isOwn(name) || [name, table].some((text) => text.includes('\0'))) return false
  // The index of a constraint has no SQL. SQLite refuses such an index if its table does not have the constraint.
  if (type === 'index') return !isOwn(table) || PLAIN_INDEX.test(sql)
  return type === 'table' && !referencesOf(db, name).some(isOwn)
}

/** The tables that the foreign keys of a table refer to. */
const referencesOf = (db: Database, table: string): readonly string[] =>
  db.prepare('select "table" from pragma_foreign_key_list(?1)').values(table).flat().map(String)

/** The definitions that the migrations up to a version make, and all names of this executable's schema in lower case. */
function ownDefinitions(version: number) {
  using db = openDatabase(':memory:', { readwrite: true, create: true })
  for (const migration of MIGRATIONS.slice(0, version)) db.run(migration)
  const expected = definitionsIn(db)
  for (const migration of MIGRATIONS.slice(version)) db.run(migration)
  const names = [...expected, ...definitionsIn(db)].map(([, name]) => name.toLowerCase())
  return { expected, names: new Set(names) }
}

const definitionsIn = (db: Database): readonly Definition[] =>
  db
    .prepare(`select type, name, tbl_name, sql from sqlite_schema`)
    .values()
    .map(([type, name, table, sql]) => [textOf(type), textOf(name), textOf(table), textOf(sql)])

function textOf(value: unknown): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : NO_TEXT
}

/** The definitions that are not among the others. */
function without(definitions: readonly Definition[], others: readonly Definition[]): readonly Definition[] {
  const texts = new Set(others.map((definition) => JSON.stringify(definition)))
  return definitions.filter((definition) => !texts.has(JSON.stringify(definition)))
}

/** Lists each object once, by the definition that is in the database or else by ours. */
function changed(role: FileRole, path: string, definitions: readonly Definition[]): AppError {
  const objects = definitions.map(([type, name]) => ({ type: TYPES.includes(type) ? type : 'object', name }))
  const once = new Map(objects.map((object) => [object.name.toLowerCase(), object]))
  const problem = `has a schema that another program has changed: ${listed([...once.values()])}`
  if (role === 'backup') return fileDamaged(role, path, problem)
  return storeUnusable(
    `The database ${path} ${problem}. Undo that, or move the database with the -wal and -shm files beside it away and run plantstore restore: see docs/how-to/backup-restore.md.`,
  )
}
