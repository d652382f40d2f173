// Tested in test/cli/transcripts/schema.txt.
import type { Database } from 'bun:sqlite'
import { type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import { openDatabase } from '../driver.ts'
import type { Format } from '../format.ts'

/** The table in a backup that names its database. `restore` leaves it out, and so does a backup of a backup. */
export const BACKUP_OF = 'backup_of'

/** A row of `sqlite_schema` (https://sqlite.org/schematab.html). A value that is no text begins with a NUL. */
export type Definition = readonly [type: string, name: string, table: string, sql: string]

/** Tables that no message lists: the record of a backup, and those of Litestream. `restore` keeps the latter. */
const UNLISTED = [
  /^CREATE TABLE _litestream_\w+ \([\w\s,]*\)$/,
  new RegExp(`^CREATE TABLE ${BACKUP_OF} \\(path text not null\\) strict$`),
]
/** A message lists at most so many objects, and so many characters of each name. */
const LISTED_MAX = 10
const LISTED_NAME_LENGTH = 100

/**
 * Compares a schema with the one that the product's migrations up to its version make. Throws `store_unusable` if one of these
 * definitions is changed or missing, or if another program has added a trigger, a view, an index of its tables or a foreign key
 * to them. Returns the tables of other programs and their indexes.
 */
export function refuseChangedSchema(role: FileRole, path: string, db: Database, version: number, format: Format) {
  const { expected, names } = ownDefinitions(version, format)
  const found = definitionsIn(db)
  const added = without(found, expected)
  // SQLite ignores the case of a name, and everything after a NUL.
  const isOwn = (name: string) => names.has(name.toLowerCase()) || name.includes('\0')
  const isForeign = ([type, name, table]: Definition) =>
    (type === 'table' || type === 'index') && ![name, table, ...referencesOf(db, name)].some(isOwn)
  const changes = [...without(expected, found), ...added.filter((definition) => !isForeign(definition))]
  if (changes.length === 0)
    return added.filter(([, name, , sql]) => !name.startsWith('sqlite_') && !UNLISTED.some((each) => each.test(sql)))
  // A changed definition is both missing and added.
  const once = new Map(changes.map((definition) => [definition[1].toLowerCase(), definition]))
  const problem = `has a schema that another program has changed: ${describeObjects([...once.values()])}`
  if (role === 'backup') throw fileDamaged(role, path, problem)
  throw storeUnusable(`The database ${path} ${problem}`, undefined, 'undo')
}

/** Objects in a message, like `table "notes", index "by_name"`. */
export function describeObjects(definitions: readonly Definition[]): string {
  const short = (text: string) => text.slice(0, LISTED_NAME_LENGTH)
  const texts = definitions.map(([type, name]) => `${short(type)} ${JSON.stringify(short(name))}`)
  const more = texts.splice(LISTED_MAX).length
  return [...texts, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

/** The tables that the foreign keys of a table refer to. */
const referencesOf = (db: Database, table: string): readonly string[] =>
  db.prepare('select "table" from pragma_foreign_key_list(?1)').values(table).flat().map(String)

/** The definitions that the migrations up to a version make, and all names of this executable's schema in lower case. */
function ownDefinitions(version: number, { migrations }: Format) {
  using db = openDatabase(':memory:', { readwrite: true, create: true })
  for (const migration of migrations.slice(0, version)) db.run(migration)
  const expected = definitionsIn(db)
  for (const migration of migrations.slice(version)) db.run(migration)
  const names = [...expected, ...definitionsIn(db)].map(([, name]) => name.toLowerCase())
  return { expected, names: new Set(names) }
}

const definitionsIn = (db: Database): readonly Definition[] =>
  db
    .prepare(`select type, name, tbl_name, sql from sqlite_schema`)
    .values()
    // The statement selects these four columns.
    .map((row) => row.map((value) => (typeof value === 'string' ? value : `\0${value}`)) as unknown as Definition)

function without(definitions: readonly Definition[], others: readonly Definition[]): readonly Definition[] {
  const texts = new Set(others.map((definition) => JSON.stringify(definition)))
  return definitions.filter((definition) => !texts.has(JSON.stringify(definition)))
}
