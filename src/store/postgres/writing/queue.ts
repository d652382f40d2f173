import { AppError } from '../../../domain/error.ts'
import type { StoreLoad } from '../../../domain/statistics.ts'
import type { UserId } from '../../../domain/token.ts'
import { isQueueFull } from '../../limits.ts'
import { linger } from '../../linger.ts'
import { type PlantWrite, WRITE_KINDS, type WriteKind } from './group-statements.ts'
import { type Step, settle, waitingSteps } from './waiting-steps.ts'
import { countWrites, type GroupOptions, refuseLocked, writeGroup } from './write-group.ts'

/** How long a write may wait until its group begins, and how often the queue looks for writes that have waited too long. */
const WAIT_TIMEOUT_MS = 1500
const LATE_CHECK_MS = 250

/**
 * All writes of plants pass through this queue, which writes them in groups. When the writer of a kind is free, one statement
 * takes all writes of that kind that wait, and each write gets its own result. Writes of one plant are done in the order in
 * which they were asked for.
 */
export function queueWrites(options: GroupOptions) {
  const { observer } = options
  const steps = waitingSteps()
  const groups: Record<WriteKind, readonly Step[]> = { create: [], delete: [] }
  const running: Partial<Record<WriteKind, Promise<void>>> = {}
  let refusal: AppError | undefined
  let lateCheck: Timer | undefined

  const refuseLate = () => {
    for (const step of steps.withdraw(performance.now() - WAIT_TIMEOUT_MS)) refuseLocked(step, tooLate(), observer)
    clearTimeout(lateCheck)
    lateCheck = steps.size.writes > 0 ? setTimeout(refuseLate, LATE_CHECK_MS) : undefined
  }

  const run = async (kind: WriteKind) => {
    while (steps.countReady(kind) > 0) {
      await linger(() => steps.countReady(kind))
      refuseLate()
      const group = steps.takeGroup(kind)
      groups[kind] = group
      if (group.length > 0) await writeGroup(kind, group, options)
      groups[kind] = []
      for (const step of group) steps.end(step)
      startWriters()
    }
    delete running[kind]
  }
  const startWriters = () => {
    for (const kind of WRITE_KINDS) if (steps.countReady(kind) > 0) running[kind] ??= run(kind)
  }

  const ask = (kind: WriteKind, plant: PlantWrite | undefined): Promise<void> => {
    if (refusal !== undefined) return Promise.reject(refusal)
    const textLength = plant?.values.reduce((sum, value) => sum + (value?.length ?? 0), 0) ?? 0
    if (isQueueFull(steps.size, textLength)) {
      observer?.recordRefusal('queue_full')
      return Promise.reject(new AppError('store_busy'))
    }
    const written = steps.add(kind, plant, textLength)
    lateCheck ??= setTimeout(refuseLate, LATE_CHECK_MS)
    startWriters()
    return written
  }

  return {
    create: (plant: PlantWrite) => ask('create', plant),
    delete: (user: UserId, id: bigint) => ask('delete', { user, id, values: [] }),
    /** Resolves if a write is possible now. It writes no plant, but it writes durably. */
    probe: () => ask('create', undefined),
    /** The writes that are not durable yet, those of the current groups included. */
    load: () => loadOf(steps, [...groups.create, ...groups.delete]),
    /** Refuses all writes from now on, waiting ones included. Resolves when the current groups have their results. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      for (const step of steps.withdraw(Number.POSITIVE_INFINITY)) settle(step, refusal)
      clearTimeout(lateCheck)
      await Promise.all(Object.values(running))
    },
  }
}

const tooLate = () => new AppError('store_busy', { cause: 'writes before this one took too long' })

function loadOf(steps: ReturnType<typeof waitingSteps>, groups: readonly Step[]): StoreLoad {
  const nowMs = performance.now()
  const oldestMs = Math.min(nowMs, steps.oldest()?.askedAtMs ?? nowMs, ...groups.map(({ askedAtMs }) => askedAtMs))
  return { waitingWrites: steps.size.writes + countWrites(groups), longestWaitMs: nowMs - oldestMs }
}
