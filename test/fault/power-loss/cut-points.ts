import type { Random } from '../../support/random.ts'
import type { Event } from './events.ts'
import { DATABASE, type Recording } from './recording.ts'

/** Length of a WAL's header (https://sqlite.org/walformat.html#the_wal_file_format). */
const WAL_HEADER_BYTES = 32

/**
 * Chooses after how many events the power is lost, in ascending order: a third each while the database is made, next to a rare
 * event, and anywhere.
 */
export function chooseCuts(recording: Recording, count: number, random: Random): readonly number[] {
  const { events } = recording
  const upTo = (end: number) => Array.from({ length: end }, (_, index) => index + 1)
  const making = upTo(events.findIndex(({ kind }) => kind === 'answered'))
  const rare = events.flatMap((event, index) => (isRare(event, recording) ? [index, index + 1] : []))
  const pools = [making, rare, upTo(events.length)]
  const chosen = new Set<number>()
  for (let draw = 0; chosen.size < Math.min(count, events.length); draw++) {
    const pool = pools[draw % pools.length] ?? []
    chosen.add(pool[random(pool.length)] ?? events.length)
  }
  return [...chosen].sort((a, b) => a - b)
}

/** Counts the events that a recording must have. */
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
    /** Syncs of the database file. Each ends a checkpoint, except the sync that makes the file. */
    databaseSyncs: count((event) => isSyncOf(event, DATABASE)),
    folderSyncs: count((event) => event.kind === 'synced' && event.of === 'folder'),
    truncatesOfWal: count((event) => event.kind === 'truncated' && isWal(recording.nameOf(event.file))),
    relinks: count(({ kind }) => kind === 'relinked'),
    walRestarts: count((event) => isWalHeader(event, recording)) - wals.length,
  }
}

/** Whether an event is rare: not one of the many that make up every group commit. */
function isRare(event: Event, recording: Recording): boolean {
  if (event.kind === 'relinked' || event.kind === 'truncated') return true
  if (event.kind === 'synced') return event.of === 'folder' || recording.nameOf(event.of) === DATABASE
  return isWalHeader(event, recording)
}

const isWal = (name: string | undefined): boolean => name === `${DATABASE}-wal`

const isWalHeader = (event: Event, { nameOf }: Recording): boolean =>
  event.kind === 'written' && event.offset === 0 && event.bytes.length === WAL_HEADER_BYTES && isWal(nameOf(event.file))
