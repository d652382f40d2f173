import { Database } from 'bun:sqlite'
import { runPlantstore } from '../support/executable.ts'
import { faultsIn, type History, readPlants } from './history.ts'
import { gapsBetween } from './power-loss/compare.ts'

/**
 * Makes a backup beside a server under load, and remembers between which moments of the history that was. Makes another one if
 * nothing was sent or answered meanwhile.
 */
export async function backUpUnderLoad(database: string, backup: string, history: History) {
  let begunAt = 0
  do {
    begunAt = history.now()
    const { stderr, exitCode } = await runPlantstore(['backup', backup, '--force', '--database', database])
    if (exitCode !== 0) throw new Error(`the backup ends with ${exitCode}: ${stderr}`)
  } while (history.now() === begunAt)
  const endedAt = history.now()
  return {
    /**
     * Throws unless a copy of the backup is the database at one moment between these two. It has all that was answered
     * before, nothing that was sent after, and no write without the writes that were answered before it was sent.
     */
    requireOneMoment(copy: string): void {
      using db = new Database(copy, { readonly: true })
      const rows = readPlants(db, 1)
      const sent = history.writes().filter(({ sentAt }) => sentAt < endedAt)
      const isEarly = ({ answeredAt = Number.POSITIVE_INFINITY }) => answeredAt < begunAt
      if (!sent.some(isEarly)) throw new Error('nothing was written before the backup')
      const known = sent.map((write) => (isEarly(write) ? write : { ...write, outcome: 'unknown' as const }))
      const faults = [...faultsIn(rows, known, history.plantOf), ...gapsBetween(rows, sent)]
      if (faults.length > 0) throw new Error(faults.slice(0, 5).join('; '))
    },
  }
}
