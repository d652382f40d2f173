import { Database } from 'bun:sqlite'
import { runPlantstore } from '../support/executable.ts'
import type { History, Write } from './history.ts'

/** Makes a backup beside a server under load, and remembers between which moments of the history that was. */
export async function backUpUnderLoad(database: string, backup: string, history: History) {
  const begunAt = history.now()
  const { stderr, exitCode } = await runPlantstore(['backup', backup, '--database', database])
  if (exitCode !== 0) throw new Error(`the backup ends with ${exitCode}: ${stderr}`)
  const endedAt = history.now()
  return {
    /**
     * Throws unless a copy of the backup is the database at one moment between these two. It has all that was answered
     * before, nothing that was sent after, and no create without the creates that were answered before it was sent.
     */
    requireOneMoment: (copy: string) => requireOneMoment(copy, history, begunAt, endedAt),
  }
}

function requireOneMoment(copy: string, history: History, begunAt: number, endedAt: number): void {
  using db = new Database(copy, { readonly: true })
  const ids = new Set(db.prepare('select id from plants').values().flat())
  const writes = history.writes()
  const deleted = new Set(writes.flatMap(({ kind, id }) => (kind === 'delete' ? [id] : [])))
  // A plant that was deleted later may or may not be in the backup.
  const known = writes.filter(({ kind, id }) => kind === 'delete' || !deleted.has(id))
  const isSeen = ({ kind, id }: Write) => ids.has(id) === (kind === 'create')
  const early = known.filter((write) => answeredAt(write) < begunAt)
  const creates = known.filter(({ kind }) => kind === 'create')
  const latest = Math.max(...creates.filter(isSeen).map(({ sentAt }) => sentAt))
  const faults = [
    ...early.filter((write) => !isSeen(write)).map(({ id }) => `${id} was answered before the backup`),
    ...creates.filter((write) => write.sentAt > endedAt && isSeen(write)).map(({ id }) => `${id} was sent after it`),
    ...creates
      .filter((write) => !isSeen(write) && answeredAt(write) < latest)
      .map(({ id }) => `${id} is missing, and a later plant is not`),
  ]
  if (early.length === 0 || creates.length === 0 || endedAt === begunAt)
    throw new Error('nothing was written before or during the backup')
  if (faults.length > 0) throw new Error(faults.slice(0, 5).join('; '))
}

const answeredAt = ({ answeredAt }: Write): number => answeredAt ?? Number.POSITIVE_INFINITY
