import { AppError } from '../../../domain/error.ts'
import type { StoreObserver } from '../../../domain/statistics.ts'
import { linger } from '../../linger.ts'
import { type Write, waitingWrites } from './waiting-writes.ts'
import { type PlantWrite, REFUSALS, type WriteGroup, type WriteKind } from './writer.ts'

/** How long a write may wait until its group begins, and how often the queue looks for writes that have waited too long. */
const WAIT_TIMEOUT_MS = 1500
const LATE_CHECK_MS = 250

interface QueueOptions {
  readonly writers: Readonly<Record<WriteKind, WriteGroup>>
  readonly observer: StoreObserver | undefined
}

/**
 * All writes of plants pass through this queue, which writes them in groups. When the writer of a kind is free, one statement
 * takes all writes of that kind that wait, and each write gets its own result.
 */
export function queueWrites(options: QueueOptions) {
  const { observer } = options
  const waiting = waitingWrites()
  const running: Partial<Record<WriteKind, Promise<void>>> = {}
  let refusal: AppError | undefined
  let lateCheck: Timer | undefined

  const finish = (write: Write, error: unknown) => {
    if (error instanceof AppError && error.kind === 'store_busy') observer?.recordRefusal('locked')
    waiting.finish(write, error)
  }
  const refuseLate = () => {
    const error = new AppError('store_busy', { cause: 'writes before this one took too long' })
    for (const write of waiting.askedBefore(performance.now() - WAIT_TIMEOUT_MS)) finish(write, error)
    clearTimeout(lateCheck)
    lateCheck = waiting.load().waitingWrites > 0 ? setTimeout(refuseLate, LATE_CHECK_MS) : undefined
  }

  const run = async (kind: WriteKind) => {
    while (waiting.countReady(kind) > 0) {
      await linger(() => waiting.countReady(kind))
      refuseLate()
      const group = waiting.takeGroup(kind)
      const errors = group.length > 0 ? await writeGroup(kind, group, options) : []
      for (const [index, write] of group.entries()) finish(write, errors[index])
      start()
    }
    delete running[kind]
  }
  const start = () => {
    if (waiting.countReady('create') > 0) running.create ??= run('create')
    if (waiting.countReady('delete') > 0) running.delete ??= run('delete')
  }

  const ask = (kind: WriteKind, plant: PlantWrite): Promise<void> => {
    if (refusal !== undefined) return Promise.reject(refusal)
    const textLength = plant.values.reduce((sum, value) => sum + (value?.length ?? 0), 0)
    if (!waiting.hasRoom(textLength)) {
      observer?.recordRefusal('queue_full')
      return Promise.reject(new AppError('store_busy'))
    }
    const key = `${plant.user} ${plant.id}`
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.add({ kind, plant, key, textLength, askedAtMs: performance.now(), resolve, reject, isInGroup: false })
    lateCheck ??= setTimeout(refuseLate, LATE_CHECK_MS)
    start()
    return promise
  }

  return {
    create: (plant: PlantWrite) => ask('create', plant),
    delete: (plant: PlantWrite) => ask('delete', plant),
    /** The writes that are not durable yet. */
    load: waiting.load,
    /** Refuses all writes from now on, waiting ones included. Resolves when the current groups have their results. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      for (const each of waiting.askedBefore(Number.POSITIVE_INFINITY)) waiting.finish(each, refusal)
      await Promise.all(Object.values(running))
      clearTimeout(lateCheck)
    },
  }
}

/** Writes a group. Resolves to the error of each write, which is `undefined` if the write was done. */
async function writeGroup(
  kind: WriteKind,
  group: readonly Write[],
  { writers, observer }: QueueOptions,
): Promise<readonly unknown[]> {
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
