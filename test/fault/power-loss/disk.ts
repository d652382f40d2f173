import type { Random } from '../../support/random.ts'
import type { Event, FileId, Relinked, Truncated, Written } from './events.ts'

/** What a disk writes whole or not at all. */
const SECTOR_BYTES = 512

/** Asked for every sector that a change touches, and for a file's size if it changes that: does it reach the disk? */
type Reaches = (part: number | 'size') => boolean

/** What of that which was not synced has reached the disk when the power is lost. */
export interface Survival {
  readonly name: string
  /** Begins the answers for a file. */
  file(): Reaches
  /** Whether the next change of the directory has. */
  entry(): boolean
}

/** Only what was synced is there. */
export const NOTHING: Survival = { name: 'nothing', file: () => () => false, entry: () => false }
/** All is there, as after the end of the processes alone. */
export const EVERYTHING: Survival = { name: 'everything', file: () => () => true, entry: () => true }

/**
 * A random subset: of each file nothing, everything, or a mixture, in which every sector, and the size, is as it was
 * after one of the changes since the sync: what it missed once it misses from then on, as the disk writes a sector
 * when it likes, but never parts of it. Each change of the directory has been kept or not, by itself.
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

/** From nearly everything to nearly nothing: a log of changes is read up to the first that is missing. */
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

/**
 * A disk with one folder, empty at first. A file's content is certain up to the changes that were over when a sync of
 * that file began. Entries of the folder, those of new files included, are certain by a sync of the folder alone: ext4
 * would also keep the entry of a new file whose content is synced, POSIX does not say so.
 */
export function emptyDisk() {
  const files = new Map<FileId, { readonly certain: Image; readonly pending: (Written | Truncated)[] }>()
  const entries = new Map<string, FileId>()
  const relinks: Relinked[] = []

  return {
    /** The next thing that happens. */
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
    /** What is on the disk when the power is lost now. */
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

/** Takes out of a list what was over before a moment. */
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

/** A file's content; what of `bytes` is behind `size` is room to grow. */
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
