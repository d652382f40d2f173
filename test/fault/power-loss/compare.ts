import { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { faultsIn, type History, isStoredBy, type PlantRows, readPlants, requestIdOf, type Write } from '../history.ts'
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
  return [...faultsIn(rows, unsure, history.plantOf), ...gapsBetween(rows, known, history)]
}

/** Finds acknowledged writes that a database lacks although it has a later write. */
export function gapsBetween(rows: PlantRows, known: KnownWrites, { plantOf }: Pick<History, 'plantOf'>): string[] {
  const kept: Write[] = []
  const missing: Write[] = []
  const deletes: (readonly [first: Write, last: Write])[] = []
  for (const [id, writes] of Map.groupBy(known, (write) => write.id)) {
    const row = rows.get(id)
    const [first, last] = [writes[0], writes.at(-1)]
    if (row === undefined && first && last?.kind === 'delete') {
      deletes.push([first, last])
      continue
    }
    const keptCount = row === undefined ? 0 : 1 + writes.findLastIndex((write) => isStoredBy(write, row, plantOf(id)))
    kept.push(...writes.slice(0, keptCount))
    missing.push(...writes.slice(keptCount).filter(({ outcome }) => outcome === 'acknowledged'))
  }
  const firstMissing = Math.min(...missing.map(answeredAt))
  const lastKept = Math.max(...kept.map(({ sentAt }) => sentAt))

  const gaps = missing.filter((write) => answeredAt(write) < lastKept)
  for (const [first, { sentAt }] of deletes) {
    // The plant is gone because its delete was kept, or because its first write was lost.
    if (sentAt > firstMissing && answeredAt(first) < lastKept) gaps.push(first)
  }
  return gaps.map((write) => `${requestIdOf(write)} is missing, and a later write is not`)
}
