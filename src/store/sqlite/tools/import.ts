import type { Database } from 'bun:sqlite'
import { AppError } from '../../../domain/error.ts'
import { PLANT_FIELDS, type PlantValues, valuesOf } from '../../../domain/plant.ts'
import type { ConflictRule, ImportCounts, Imported, OwnedPlant } from '../../../domain/transfer.ts'
import { PLANT_COLUMNS } from '../../plant-columns.ts'
import { checkpoints } from '../checkpoints.ts'
import { prepareCommit } from '../commit.ts'
import { openWriter, rowsOf } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { watchFiles } from '../files/moved-files.ts'
import { insertInto } from '../insert.ts'

/** What imports into a database. */
export type Importer = ReturnType<typeof openImporter>

/** The connection that imports: each call is a transaction, but between `begin` and `commit`. */
export function openImporter(path: string, nowMs: () => number) {
  const { opened: writer, areMoved } = watchFiles(path, () => {
    const writer = openWriter(path, 'full', { create: false })
    writer.run('pragma busy_timeout = 0')
    writer.prepare('select 1 from users').values()
    return writer
  })
  const wal = checkpoints(writer, undefined, (error) => toAppError(error, { duringWrite: false, path }))
  const importRows = plantImport(writer, nowMs)
  let isBegun = false

  const commitAll = prepareCommit(writer)
  const commit = () => {
    commitAll()
    if (areMoved()) {
      const cause = new Error(`${path}, or a file beside it, was moved, replaced or deleted`)
      throw new AppError('store_failed', { outcomeIsUnknown: true, cause })
    }
  }
  return {
    importPlants(plants: readonly OwnedPlant[], rule: ConflictRule): Imported {
      if (isBegun) return { ...importRows(plants, rule), heldMs: 0 }
      // Before anything is stored that a failure of it would leave in doubt.
      wal.runIfDue()
      writer.run('begin immediate')
      const begunMs = performance.now()
      try {
        const counts = importRows(plants, rule)
        commit()
        return { ...counts, heldMs: performance.now() - begunMs }
      } catch (error) {
        if (writer.inTransaction) writer.run('rollback')
        throw error
      }
    },
    begin(): void {
      writer.run('begin immediate')
      isBegun = true
    },
    commit,
    close(): void {
      if (writer.inTransaction) writer.run('rollback')
      writer.close(true)
    },
  }
}

/** Stores plants in a transaction that has begun. */
function plantImport(writer: Database, nowMs: () => number) {
  const insertUser = writer.prepare<unknown, [string, number]>(
    'insert into users (name, created_at_ms) values (?1, ?2) on conflict do nothing',
  )
  const selectUser = writer.prepare<unknown, [string]>('select id from users where name = ?1')
  type Row = [user: bigint, id: bigint, ...values: PlantValues]
  const insert = writer.prepare<unknown, Row>(`${insertInto('plants', PLANT_COLUMNS)} on conflict do nothing`)
  const update = writer.prepare<unknown, Row>(
    `update plants set ${PLANT_FIELDS.map((field, index) => `${field} = ?${index + 3}`).join(', ')} where user_id = ?1 and id = ?2`,
  )
  const userOf = (name: string, counts: { users: number }): bigint => {
    counts.users += insertUser.run(name, nowMs()).changes
    const [[id] = [0n]] = rowsOf<[bigint]>(selectUser.values(name))
    return id
  }

  return (plants: readonly OwnedPlant[], rule: ConflictRule): ImportCounts => {
    // Looked up anew by each: somebody may have deleted a user meanwhile.
    const users = new Map<string, bigint>()
    const counts = { users: 0, created: 0, skipped: 0, replaced: 0 }
    for (const plant of plants) {
      const { user, id } = plant
      const userId = users.get(user) ?? userOf(user, counts)
      users.set(user, userId)
      const row: Row = [userId, id, ...valuesOf(plant)]
      if (insert.run(...row).changes > 0) counts.created++
      else if (rule === 'skip') counts.skipped++
      else if (rule === 'replace') counts.replaced += update.run(...row).changes
      else throw new AppError('plant_exists', { message: `The user ${user} has got plant ${id} meanwhile.` })
    }
    return counts
  }
}
