import { AppError } from '../../../domain/error.ts'
import type { PlantValues } from '../../../domain/plant.ts'
import type { StoreObserver } from '../../../domain/store.ts'
import { isGroupFull, isQueueFull } from '../../limits.ts'
import { linger } from '../../linger.ts'
import { type PlantWrite, REFUSALS, type WriteKind } from './statements.ts'
import type { WriteGroup } from './writer.ts'

/** How long a write may wait until its group begins, and how often the queue looks for writes that have waited too long. */
const WAIT_TIMEOUT_MS = 1500
const LATE_CHECK_MS = 250

const OTHER = { create: 'delete', delete: 'create' } as const satisfies Record<WriteKind, WriteKind>

/** A write that has no result yet. */
interface Write {
  readonly kind: WriteKind
  readonly plant: PlantWrite
  /** The user and the id of the plant. */
  readonly key: string
  readonly textLength: number
  readonly askedAtMs: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface QueueOptions {
  readonly writers: Readonly<Record<WriteKind, WriteGroup>>
  readonly observer: StoreObserver | undefined
  /** Throws an `AppError` while no write may be asked for. */
  readonly requireOpen: () => void
}

/**
 * All writes of plants pass through this queue, which writes them in groups. When the writer of a kind is free, one statement
 * takes all writes of that kind that may begin, and each write gets its own result.
 */
export function queueWrites(options: QueueOptions) {
  const { observer, requireOpen } = options
  const { waiting, ...unfinished } = trackUnfinished()
  const running: Partial<Record<WriteKind, Promise<void>>> = {}
  let lateCheck: Timer | undefined

  const refuseLate = () => {
    const error = new AppError('store_busy', { cause: 'writes before this one took too long' })
    for (const write of unfinished.takeAskedBefore(performance.now() - WAIT_TIMEOUT_MS)) settle(write, error, observer)
    clearTimeout(lateCheck)
    lateCheck = waiting.size > 0 ? setTimeout(refuseLate, LATE_CHECK_MS) : undefined
  }

  const run = async (kind: WriteKind) => {
    for (;;) {
      await linger(() => waiting.size)
      refuseLate()
      const group = unfinished.takeGroup(kind)
      if (group.length === 0) break
      const errors = await writeGroup(kind, group, options)
      unfinished.endGroup(kind)
      for (const [index, write] of group.entries()) settle(write, errors[index], observer)
      start(OTHER[kind])
    }
    delete running[kind]
  }
  const start = (kind: WriteKind) => {
    if (unfinished.hasWaiting(kind)) running[kind] ??= run(kind)
  }

  const ask = async (kind: WriteKind, plant: PlantWrite): Promise<void> => {
    requireOpen()
    const { promise, ...write } = newWrite(kind, plant)
    if (!unfinished.hasRoom(write.textLength)) {
      observer?.recordRefusal('queue_full')
      throw new AppError('store_busy')
    }
    unfinished.add(write)
    lateCheck ??= setTimeout(refuseLate, LATE_CHECK_MS)
    start(kind)
    return promise
  }

  return {
    create: (plant: PlantWrite<PlantValues>) => ask('create', plant),
    delete: (plant: PlantWrite) => ask('delete', plant),
    /** The writes that are not durable yet. */
    load: unfinished.load,
    /** Refuses the waiting writes. Resolves when the current groups have their results. */
    async refuseWaiting(error: AppError): Promise<void> {
      for (const write of unfinished.takeAskedBefore(Number.POSITIVE_INFINITY)) write.reject(error)
      await Promise.all(Object.values(running))
      clearTimeout(lateCheck)
    },
  }
}

function settle(write: Write, error: unknown, observer: QueueOptions['observer']): void {
  if (error === undefined) write.resolve()
  else write.reject(error)
  if (error instanceof AppError && error.kind === 'store_busy') observer?.recordRefusal('locked')
}

function newWrite(kind: WriteKind, plant: PlantWrite) {
  const key = `${plant.user} ${plant.id}`
  const textLength = plant.values.reduce((sum, value) => sum + (value?.length ?? 0), 0)
  return { kind, plant, key, textLength, askedAtMs: performance.now(), ...Promise.withResolvers<void>() }
}

/** Tracks the writes that have no result yet. */
function trackUnfinished() {
  /** The writes that no group has taken, in the order in which they were asked for. */
  const waiting = new Set<Write>()
  const counts: Record<WriteKind, number> = { create: 0, delete: 0 }
  /** The groups that are being written. */
  const groups: Record<WriteKind, readonly Write[]> = { create: [], delete: [] }
  let textLength = 0

  const count = () => waiting.size + groups.create.length + groups.delete.length
  const take = (write: Write) => {
    waiting.delete(write)
    counts[write.kind]--
  }
  return {
    waiting,
    load() {
      const nowMs = performance.now()
      const [first] = waiting
      const askedAtMs = [first, groups.create[0], groups.delete[0]].map((write) => write?.askedAtMs ?? nowMs)
      return { waitingWrites: count(), longestWaitMs: nowMs - Math.min(...askedAtMs) }
    },
    hasWaiting: (kind: WriteKind): boolean => counts[kind] > 0,
    hasRoom: (forTextLength: number): boolean => !isQueueFull({ writes: count(), textLength }, forTextLength),
    add(write: Write): void {
      waiting.add(write)
      counts[write.kind]++
      textLength += write.textLength
    },
    *takeAskedBefore(timeMs: number): Generator<Write> {
      for (const write of waiting) {
        if (write.askedAtMs >= timeMs) return
        take(write)
        textLength -= write.textLength
        yield write
      }
    },
    takeGroup(kind: WriteKind): readonly Write[] {
      groups[kind] = nextGroup(waiting, kind, groups[OTHER[kind]])
      for (const write of groups[kind]) take(write)
      return groups[kind]
    },
    endGroup(kind: WriteKind): void {
      for (const write of groups[kind]) textLength -= write.textLength
      groups[kind] = []
    },
  }
}

/**
 * The writes of a kind that a group may hold now. The writes of a plant are done in order, so a write waits for earlier ones of
 * its plant. But a group takes several equal ones: their results follow from the first. After a delete with values, another
 * delete may still find the plant.
 */
function nextGroup(waiting: Iterable<Write>, kind: WriteKind, others: readonly Write[]): readonly Write[] {
  const blocked = new Set(others.map(({ key }) => key))
  const group: Write[] = []
  const load = { writes: 0, textLength: 0 }
  for (const write of waiting) {
    if (isGroupFull(load)) break
    const isTaken = write.kind === kind && !blocked.has(write.key)
    if (!isTaken || (kind === 'delete' && write.plant.values.length > 0)) blocked.add(write.key)
    if (!isTaken) continue
    load.writes = group.push(write)
    load.textLength += write.textLength
  }
  return group
}

/** Writes a group. Resolves to the error of each write, which is `undefined` if the write was done. */
async function writeGroup(kind: WriteKind, group: readonly Write[], { writers, observer }: QueueOptions) {
  const startMs = performance.now()
  try {
    const refusals = await writers[kind](group.map(({ plant }) => plant))
    observer?.recordGroup(group.length, performance.now() - startMs)
    const keys = new Set<string>()
    return group.map(({ key }, index) => {
      // Of several creates only the first can store the plant, and of several deletes only the first can find it.
      const refusal = refusals.get(index) ?? (keys.has(key) ? REFUSALS[kind] : undefined)
      keys.add(key)
      return refusal && new AppError(refusal)
    })
  } catch (error) {
    return group.map(() => error)
  }
}
