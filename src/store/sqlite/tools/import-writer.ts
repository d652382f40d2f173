import type { Database } from 'bun:sqlite'
import { AppError } from '../../../domain/error.ts'
import { valuesOf } from '../../../domain/plant.ts'
import type { ConflictRule, ImportCounts, ImportedBatch, OwnedPlant } from '../../../domain/transfer.ts'
import { PLANT_COLUMNS } from '../../rows.ts'
import { openWriter, rowsOf } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { watchFiles } from '../files/moved-files.ts'
import { checkpoints } from '../writing/checkpoints.ts'
import { prepareCommit } from '../writing/commit.ts'
import { rowWriter } from './rows.ts'

/** The connection of an import. Each batch is a transaction, but between `begin` and `commit`. */
export type ImportWriter = ReturnType<typeof openImportWriter>

export function openImportWriter(path: string, nowMs: () => number) {
  const { opened: writer, areMoved } = watchFiles(path, () => {
    const writer = openWriter(path, 'full', { create: false })
    writer.run('pragma busy_timeout = 0')
    writer.prepare('select 1 from users').values()
    return writer
  })
  const wal = checkpoints(writer, (error) => toAppError(error, { duringWrite: false, path }))
  const writePlants = plantWriter(writer, nowMs)
  let hasBegun = false

  const commitTransaction = prepareCommit(writer)
  const commit = (): void => {
    commitTransaction()
    if (areMoved()) {
      const cause = new Error(`${path}, or a file beside it, was moved, replaced or deleted`)
      throw new AppError('store_failed', { outcomeIsUnknown: true, cause })
    }
  }

  return {
    write(plants: readonly OwnedPlant[], rule: ConflictRule): ImportedBatch {
      if (hasBegun) return { ...writePlants(plants, rule), heldMs: 0 }
      // If a checkpoint fails before the transaction, nothing of the batch is in doubt.
      wal.runIfDue()
      writer.run('begin immediate')
      const startMs = performance.now()
      try {
        const counts = writePlants(plants, rule)
        commit()
        return { ...counts, heldMs: performance.now() - startMs }
      } catch (error) {
        if (writer.inTransaction) writer.run('rollback')
        throw error
      }
    },
    begin(): void {
      writer.run('begin immediate')
      hasBegun = true
    },
    commit,
    close(): void {
      if (writer.inTransaction) writer.run('rollback')
      writer.close(true)
    },
  }
}

/** Writes plants, and their users if they are new, inside a transaction. */
function plantWriter(writer: Database, nowMs: () => number) {
  const insertUser = writer.prepare<unknown, [string, number]>(
    'insert into users (name, created_at_ms) values (?1, ?2) on conflict do nothing',
  )
  const selectUser = writer.prepare<unknown, [string]>('select id from users where name = ?1')
  const rows = rowWriter(writer, 'plants', PLANT_COLUMNS)

  return (plants: readonly OwnedPlant[], rule: ConflictRule): ImportCounts => {
    const counts = { users: 0, created: 0, skipped: 0, replaced: 0 }
    // Another process may have deleted a user since the last batch.
    const userIds = new Map<string, bigint>()
    const userIdOf = (name: string): bigint => {
      const known = userIds.get(name)
      if (known !== undefined) return known
      counts.users += insertUser.run(name, nowMs()).changes
      const [[id] = [0n]] = rowsOf<[bigint]>(selectUser.values(name))
      userIds.set(name, id)
      return id
    }
    for (const plant of plants) {
      const { user, id } = plant
      const row = [userIdOf(user), id, ...valuesOf(plant)]
      if (rows.insert(row)) counts.created++
      else if (rule === 'fail')
        throw new AppError('plant_exists', { message: `The user ${user} has got plant ${id} meanwhile.` })
      else if (rule === 'skip') counts.skipped++
      else if (rows.replace(row)) counts.replaced++
    }
    return counts
  }
}
