import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { faultsIn, type PlantRows, readPlants, requestIdOf, type Write } from '../history.ts'
import type { RecordingWithHistory } from './record.ts'

/**
 * What was known of the writes at the moment when the power was lost: those that were sent, and what had been
 * answered.
 */
export type Known = readonly Write[]

/**
 * What was known after so many events. A write was acknowledged when its answer was on its way. One that the client
 * sent after it had seen an answer of later than that was not sent yet.
 */
export function knownAfter(count: number, { events, history }: RecordingWithHistory): Known {
  const answered = new Set<string>()
  for (const event of events.slice(0, count)) if (event.kind === 'answered') answered.add(event.requestId)
  const isAnswered = (write: Write) => answered.has(requestIdOf(write))
  const writes = history.writes()
  const firstLater = Math.min(...writes.filter((write) => !isAnswered(write)).map(answeredAt))
  return writes
    .filter(({ sentAt }) => sentAt < firstLater)
    .map((write) => ({ ...write, outcome: isAnswered(write) ? 'acknowledged' : 'unknown' }))
}

const answeredAt = (write: Write): number => write.answeredAt ?? Number.POSITIVE_INFINITY

/** The plants that a rebuilt database holds: none where there is no database yet. Throws if it is damaged. */
export function readRebuilt(database: string): PlantRows {
  if (!existsSync(database)) return new Map()
  using db = new Database(database, { readwrite: true })
  // Nobody loses the power now: recovery need not wait for the disk.
  db.run('pragma synchronous = off')
  if (db.prepare("select name from sqlite_schema where name = 'plants'").get() === null) return new Map()
  const orphans = db.prepare('pragma foreign_key_check').values()
  if (orphans.length > 0) throw new Error(`damaged: ${orphans.length} rows belong to no user`)
  return readPlants(db, 1)
}

/** What a database lacks that was acknowledged, and what it has that nobody has sent: nothing may be. */
export const lossesIn = (rows: PlantRows, known: Known, { history }: RecordingWithHistory): string[] =>
  faultsIn(rows, known, history.plantOf)

/**
 * What a database has that nobody has sent, and what it lacks though it has a write that was sent after that had been
 * answered: only the latest writes may be missing, all from some point on.
 */
export function gapsIn(rows: PlantRows, known: Known, { history }: RecordingWithHistory): string[] {
  const unsure = known.map((write): Write => ({ ...write, outcome: 'unknown' }))
  return [...faultsIn(rows, unsure, history.plantOf), ...gapsBetween(rows, known)]
}

function gapsBetween(rows: PlantRows, known: Known): string[] {
  const creates = new Map(known.filter(({ kind }) => kind === 'create').map((write) => [write.id, write]))
  const deletes = known.filter(({ kind }) => kind === 'delete')
  const isDeleted = new Set(deletes.map(({ id }) => id))
  const isMissing = ({ kind, id }: Write) => (kind === 'create' ? !rows.has(id) && !isDeleted.has(id) : rows.has(id))

  const missing = known.filter((write) => write.outcome === 'acknowledged' && isMissing(write))
  const firstMissing = Math.min(...missing.map(answeredAt))
  const lastKept = Math.max(
    ...known.filter(({ kind, id }) => kind === 'create' && rows.has(id)).map(({ sentAt }) => sentAt),
  )

  const gaps = missing.filter((write) => answeredAt(write) < lastKept).map(requestIdOf)
  for (const { id, sentAt } of deletes) {
    // It is gone: because its delete was kept, or because its create was not.
    const create = creates.get(id)
    if (rows.has(id) || create === undefined) continue
    if (sentAt > firstMissing && answeredAt(create) < lastKept) gaps.push(requestIdOf(create))
  }
  return gaps.map((write) => `${write} is missing, and a later write is not`)
}
