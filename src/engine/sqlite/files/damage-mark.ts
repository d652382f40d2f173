// Tested in test/fault/damage.test.ts.
import type { Database } from 'bun:sqlite'
import { rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type AppError, kindOf, orUndefined } from '../../../error.ts'
import { type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import type { EngineEvent } from '../../observer.ts'
import { openReader } from '../driver.ts'
import { isDamage } from '../errors.ts'
import type { Format } from '../format.ts'
import { findProblems } from '../migrate.ts'
import { createFile, sizeOf, syncDirectory } from './file-system.ts'

/** A start checks a marked database up to this size. With small rows the check takes some 20 s for each GB. */
const CHECKED_MAX_BYTES = 4 * 1024 ** 3

/**
 * An empty file beside a database in which a process has read a damaged page. A start does not read all pages, so it looks for
 * the mark. A full disk may have room for a name when it has none for content.
 */
const markOf = (path: string): string => `${path}-damage-found`

/** Marks a database as damaged, durably. Does nothing if that fails: the process has to end in any case. */
export function markDamaged(path: string): void {
  orUndefined(() => createFile(markOf(path), path))
  orUndefined(() => syncDirectory(dirname(path)))
}

/** Somebody may have given the name to a file of theirs, or the name is too long for the file system. */
const isMarked = (path: string): boolean => orUndefined(() => statSync(markOf(path)).size) === 0

/** Removes the mark: the file at the path is whole. A mark that stays costs the next start a check. */
export const removeMark = (path: string): void => void orUndefined(() => isMarked(path) && rmSync(markOf(path)))

/** Marks the database if an error of its store says that it is damaged. Returns the error. */
export function markedIfDamaged(error: unknown, path: string): unknown {
  if (error instanceof Error && kindOf(error) === 'store_failed' && isDamage(error.cause)) markDamaged(path)
  return error
}

/** The error of a file in which damage was found. Marks the file if it is a database. */
export function damageFound(role: FileRole, path: string, damage: string): AppError {
  if (role === 'database') markDamaged(path)
  return fileDamaged(role, path, `is damaged: ${damage}`)
}

/** As `findProblems`. Marks a database that is damaged, and removes the mark of one that is not. */
export function findAndMark(db: Database, path: string, format: Format): readonly string[] {
  const problems = findProblems(db, format)
  // A start refuses no database for rows that break rules of the product.
  if (problems.length > 0 && findDamage(db) !== '') markDamaged(path)
  else removeMark(path)
  return problems
}

/** Refuses a marked database that is damaged, or too large for the check, which blocks this thread. Else removes the mark. */
export function refuseMarked(path: string, onEvent: (event: EngineEvent) => void): void {
  if (!isMarked(path)) return
  if (sizeOf(path) > CHECKED_MAX_BYTES)
    throw storeUnusable(`The database ${path} was damaged, and is too large to check at a start`, undefined, 'check')
  onEvent({ level: 'warn', message: 'a process found the database damaged, so it is checked', sizes: {} })
  using db = openReader(path)
  const damage = findDamage(db)
  if (damage !== '') throw fileDamaged('database', path, `is damaged: ${damage}`)
  removeMark(path)
  onEvent({ level: 'warn', message: 'the check found no damage', sizes: {} })
}

/** The first damage that a pragma finds. `quick_check` would miss an index that names other rows than its table has. */
export const findDamage = (db: Database, pragma = 'main.integrity_check(1)'): string =>
  findProblems(db, { findBrokenRows: () => [] }, pragma)[0] ?? ''
