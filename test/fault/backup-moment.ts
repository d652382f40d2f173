import { Database } from 'bun:sqlite'
import type { Entry, History } from './history.ts'

/**
 * Throws unless a backup is the database at one moment between two of a history's: it has all that was answered before the
 * first, nothing that was sent after the second, and of two creates of which one was sent after the other's answer never the
 * later alone.
 */
export function requireOneMoment(backup: string, history: History, begunAt: number, endedAt: number): void {
  using db = new Database(backup, { readonly: true })
  const ids = new Set(db.prepare('select id from plants').values().flat())
  const deleted = new Set(history.entries().flatMap(({ kind, id }) => (kind === 'delete' ? [id] : [])))
  // Of a plant that was deleted later nobody knows whether it was there.
  const known = history.entries().filter(({ kind, id }) => kind === 'delete' || !deleted.has(id))
  const isSeen = ({ kind, id }: Entry) => ids.has(id) === (kind === 'create')
  const early = known.filter((entry) => answeredAt(entry) < begunAt)
  const creates = known.filter(({ kind }) => kind === 'create')
  const latest = Math.max(...creates.filter(isSeen).map(({ sentAt }) => sentAt))
  const faults = [
    ...early.filter((entry) => !isSeen(entry)).map(({ id }) => `${id} was answered before it`),
    ...creates.filter((entry) => entry.sentAt > endedAt && isSeen(entry)).map(({ id }) => `${id} was sent after it`),
    ...creates
      .filter((entry) => !isSeen(entry) && answeredAt(entry) < latest)
      .map(({ id }) => `${id} is missing, and a later one is not`),
  ]
  if (early.length === 0 || creates.length === 0) throw new Error('nothing was written before the backup')
  if (faults.length > 0) throw new Error(faults.slice(0, 5).join('; '))
}

const answeredAt = ({ answeredAt }: Entry): number => answeredAt ?? Number.POSITIVE_INFINITY
