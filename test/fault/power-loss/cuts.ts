import type { Random } from '../../support/random.ts'
import type { Event } from './events.ts'
import { DATABASE, type Recording } from './record.ts'

/** Bytes that begin a WAL, and begin it anew (https://sqlite.org/walformat.html#the_wal_file_format). */
const WAL_HEADER_BYTES = 32

/**
 * Where the power is lost: after so many events, in ascending order. A third each while the database is made, beside
 * one of the events that are rare, and anywhere.
 */
export function chooseCuts(recording: Recording, count: number, random: Random): readonly number[] {
  const { events } = recording
  const upTo = (end: number) => Array.from({ length: end }, (_, index) => index + 1)
  const making = upTo(events.findIndex(({ kind }) => kind === 'answered'))
  const turns = events.flatMap((event, index) => (isTurn(event, recording) ? [index, index + 1] : []))
  const pools = [making, turns, upTo(events.length)]
  const chosen = new Set<number>()
  for (let draw = 0; chosen.size < Math.min(count, events.length); draw++) {
    const pool = pools[draw % pools.length] ?? []
    chosen.add(pool[random(pool.length)] ?? events.length)
  }
  return [...chosen].sort((a, b) => a - b)
}

/** How often happened what a recording must have. */
export function countsOf(recording: Recording) {
  const { events } = recording
  const count = (is: (event: Event) => boolean) => events.filter(is).length
  const isSyncOf = (event: Event, name: string) =>
    event.kind === 'synced' && event.of !== 'folder' && recording.nameOf(event.of) === name
  const wals = events.filter(
    (event) => event.kind === 'relinked' && event.entries.some(([name, file]) => isWal(name) && file !== undefined),
  )
  return {
    answers: count(({ kind }) => kind === 'answered'),
    walSyncs: count((event) => isSyncOf(event, `${DATABASE}-wal`)),
    /** Of the database's file itself: each is the end of a checkpoint, but the one of its making. */
    databaseSyncs: count((event) => isSyncOf(event, DATABASE)),
    folderSyncs: count((event) => event.kind === 'synced' && event.of === 'folder'),
    truncatesOfWal: count((event) => event.kind === 'truncated' && isWal(recording.nameOf(event.file))),
    relinks: count(({ kind }) => kind === 'relinked'),
    walRestarts: count((event) => isWalHeader(event, recording)) - wals.length,
  }
}

/** Whether an event is none of the many that every group of writes consists of. */
function isTurn(event: Event, recording: Recording): boolean {
  if (event.kind === 'relinked' || event.kind === 'truncated') return true
  if (event.kind === 'synced') return event.of === 'folder' || recording.nameOf(event.of) === DATABASE
  return isWalHeader(event, recording)
}

const isWal = (name: string | undefined): boolean => name === `${DATABASE}-wal`

const isWalHeader = (event: Event, { nameOf }: Recording): boolean =>
  event.kind === 'written' && event.offset === 0 && event.bytes.length === WAL_HEADER_BYTES && isWal(nameOf(event.file))
