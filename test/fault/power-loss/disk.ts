import type { Random } from '../../support/random.ts'
import type { Event, FileId, Relinked, Truncated, Written } from './events.ts'

/** A disk writes a sector whole or not at all. */
const SECTOR_BYTES = 512

/** Whether a sector, or the size of a file, reaches the disk. Is called for each part that a change touches. */
type Reaches = (part: number | 'size') => boolean

/** Which unsynced changes have reached the disk when the power is lost. */
export interface Survival {
  readonly name: string
  /** The changes of a file. */
  file(): Reaches
  /** Whether the next change of the directory has reached the disk. */
  entry(): boolean
}

/** Only synced changes are on the disk. */
export const NOTHING: Survival = { name: 'nothing', file: () => () => false, entry: () => false }
/** All changes are on the disk, as after the end of the processes alone. */
export const EVERYTHING: Survival = { name: 'everything', file: () => () => true, entry: () => true }

/**
 * A random subset: of each file nothing, everything, or a mixture. In a mixture every sector, and the size, is as it was after
 * one of the changes since the sync, because a disk writes each sector whole and when it likes. Each change of the directory
 * is kept or not, independently.
 */
export const something = (random: Random): Survival => ({
  name: 'something',
  file() {
    const choice = random(4)
    if (choice === 0) return NOTHING.file()
    return choice === 1 ? EVERYTHING.file() : torn(random)
  },
  entry: () => random(2) === 0,
})

/** Keeps from nearly everything to nearly nothing, because SQLite reads a WAL up to the first missing change. */
function torn(random: Random): Reaches {
  const changesPerLoss = 2 ** (1 + random(10))
  const stale = new Set<number | 'size'>()
  return (part) => {
    if (stale.has(part)) return false
    if (random(changesPerLoss) > 0) return true
    stale.add(part)
    return false
  }
}

/** The files' contents by name. */
export type Files = ReadonlyMap<string, Uint8Array>

/** Two disks have equal strings only if their files are equal. */
export const contentOf = (files: Files): string =>
  [...files]
    .map(([name, bytes]) => `${name}: ${Bun.SHA256.hash(bytes, 'hex')}`)
    .sort()
    .join(', ')

/**
 * A disk with one empty folder. A change of a file is certain if it was over when a sync of that file began. Entries of the
 * folder, also of new files, are certain only by a sync of the folder: ext4 keeps the entry of a new file whose content is
 * synced, but POSIX does not promise so.
 */
export function emptyDisk() {
  const files = new Map<FileId, { readonly certain: Image; readonly pending: (Written | Truncated)[] }>()
  const entries = new Map<string, FileId>()
  const relinks: Relinked[] = []

  return {
    /** Applies the next event. */
    take(event: Event): void {
      if (event.kind === 'relinked') {
        relinks.push(event)
        for (const [, file] of event.entries) {
          if (file !== undefined && !files.has(file)) files.set(file, { certain: emptyImage(), pending: [] })
        }
      }
      if (event.kind === 'written' || event.kind === 'truncated') files.get(event.file)?.pending.push(event)
      if (event.kind !== 'synced') return
      if (event.of === 'folder') {
        for (const change of takeOver(relinks, event.begunAt)) relink(entries, change)
        return
      }
      const file = files.get(event.of)
      if (file !== undefined) change(file.certain, takeOver(file.pending, event.begunAt), EVERYTHING.file())
    },
    /** The files on the disk if the power is lost now. */
    lose(survival: Survival): Files {
      const kept = new Map(entries)
      for (const change of relinks) if (survival.entry()) relink(kept, change)
      const contents = new Map<string, Uint8Array>()
      for (const [name, id] of kept) {
        const { certain, pending } = files.get(id) ?? { certain: emptyImage(), pending: [] }
        const image = { bytes: certain.bytes.slice(0, certain.size), size: certain.size }
        change(image, pending, survival.file())
        contents.set(name, image.bytes.subarray(0, image.size))
      }
      return contents
    },
  }
}

/** Removes the changes from a list that were over before a moment. */
function takeOver<T extends Written | Truncated | Relinked>(pending: T[], moment: number): readonly T[] {
  const over = pending.filter(({ doneAt }) => doneAt < moment)
  pending.splice(0, pending.length, ...pending.filter(({ doneAt }) => doneAt >= moment))
  return over
}

function relink(entries: Map<string, FileId>, { entries: changed }: Relinked): void {
  for (const [name, file] of changed) {
    if (file === undefined) entries.delete(name)
    else entries.set(name, file)
  }
}

/** The content of a file. The bytes behind `size` are room to grow. */
interface Image {
  bytes: Uint8Array
  size: number
}

const emptyImage = (): Image => ({ bytes: new Uint8Array(), size: 0 })

function change(image: Image, changes: readonly (Written | Truncated)[], reaches: Reaches): void {
  let sizeAsked = image.size
  const resize = (size: number) => {
    sizeAsked = size
    if (reaches('size')) image.size = size
  }
  for (const each of changes) {
    if (each.kind === 'written') {
      const end = each.offset + each.bytes.length
      reserve(image, end)
      for (const [sector, from, to] of sectors(each.offset, end)) {
        if (reaches(sector)) image.bytes.set(each.bytes.subarray(from - each.offset, to - each.offset), from)
      }
      if (end > sizeAsked) resize(end)
    } else {
      reserve(image, each.size)
      for (const [sector, from, to] of sectors(each.size, image.bytes.length)) {
        if (reaches(sector)) image.bytes.fill(0, from, to)
      }
      resize(each.size)
    }
  }
}

function reserve(image: Image, size: number): void {
  if (size <= image.bytes.length) return
  const bytes = new Uint8Array(Math.max(size, 2 * image.bytes.length))
  bytes.set(image.bytes)
  image.bytes = bytes
}

function* sectors(start: number, end: number): Generator<[sector: number, from: number, to: number]> {
  for (let from = start; from < end; ) {
    const sector = Math.floor(from / SECTOR_BYTES)
    const to = Math.min(end, (sector + 1) * SECTOR_BYTES)
    yield [sector, from, to]
    from = to
  }
}
