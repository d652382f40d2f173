import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { faultsIn, type PlantRows, readPlants, requestIdOf, type Write } from '../history.ts'
import type { LoadRecording } from './recording.ts'

/** The writes that were sent when the power was lost, with their outcomes at that moment. */
export type KnownWrites = readonly Write[]

/**
 * The writes that were known after a number of events. A write is acknowledged once its answer is on its way. A write that the
 * client sent after it had received a later answer was not sent yet.
 */
export function knownAfter(count: number, { events, history }: LoadRecording): KnownWrites {
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

/** The plants of a rebuilt database; none if the database was not made yet. Throws if the database is damaged. */
export function readRebuilt(database: string): PlantRows {
  if (!existsSync(database)) return new Map()
  using db = new Database(database, { readwrite: true })
  // This recovery need not wait for the disk.
  db.run('pragma synchronous = off')
  if (db.prepare("select name from sqlite_schema where name = 'plants'").get() === null) return new Map()
  const orphans = db.prepare('pragma foreign_key_check').values()
  if (orphans.length > 0) throw new Error(`damaged: ${orphans.length} rows belong to no user`)
  return readPlants(db, 1)
}

/** Finds writes that a database lacks although it has a later write, and plants that nobody has sent. */
export function findGaps(rows: PlantRows, known: KnownWrites, { history }: LoadRecording): string[] {
  const unsure = known.map((write): Write => ({ ...write, outcome: 'unknown' }))
  return [...faultsIn(rows, unsure, history.plantOf), ...gapsBetween(rows, known)]
}

/** Finds acknowledged writes that a database lacks although it has a later write. */
export function gapsBetween(rows: PlantRows, known: KnownWrites): string[] {
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
    // The plant is gone because its delete was kept, or because its create was lost.
    const create = creates.get(id)
    if (rows.has(id) || create === undefined) continue
    if (sentAt > firstMissing && answeredAt(create) < lastKept) gaps.push(requestIdOf(create))
  }
  return gaps.map((write) => `${write} is missing, and a later write is not`)
}
