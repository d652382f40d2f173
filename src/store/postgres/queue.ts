import { AppError } from '../../domain/error.ts'
import type { StoreLoad, StoreObserver } from '../../domain/statistics.ts'
import type { UserId } from '../../domain/token.ts'
import { isQueueFull } from '../limits.ts'
import { linger } from '../linger.ts'
import { type PlantWrite, WRITE_KINDS, type WriteKind } from './group-statements.ts'
import { type Step, settle, waitingSteps } from './waiting-steps.ts'
import type { Writer } from './writer.ts'

/** How long a write may wait until its group begins, and how often the queue looks for writes that have waited too long. */
const WAIT_TIMEOUT_MS = 1500
const LATE_CHECK_MS = 250

interface QueueOptions {
  readonly writers: Readonly<Record<WriteKind, Writer>>
  /** Which of these users exist. */
  readonly existingUsers: (users: readonly UserId[]) => Promise<ReadonlySet<UserId>>
  readonly observer: StoreObserver | undefined
}

/** Plants that wait to be written. All writes of plants pass through this queue. */
export type WriteQueue = ReturnType<typeof queueWrites>

/**
 * Writes plants in groups. When the writer of a kind is free, one statement takes all writes of that kind that wait, and each
 * write gets its own result. Writes of one plant are done in the order in which they were asked for.
 */
export function queueWrites(options: QueueOptions) {
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

/** Writes a group and gives each step its result. */
async function writeGroup(kind: WriteKind, group: readonly Step[], options: QueueOptions): Promise<void> {
  const { writers, existingUsers, observer } = options
  const startMs = performance.now()
  try {
    const refused = new Set(await writers[kind].write(group.flatMap(({ plant }) => plant ?? [])))
    observer?.recordGroup(countWrites(group), performance.now() - startMs)
    const errorOf = kind === 'create' ? await explainCreates([...refused], existingUsers) : notFound
    for (const step of group) {
      const { plant } = step
      settle(step, plant !== undefined && refused.has(plant) ? errorOf(plant) : undefined)
    }
  } catch (error) {
    const isLocked = error instanceof AppError && error.kind === 'store_busy'
    for (const step of group) {
      if (isLocked) refuseLocked(step, error, observer)
      else settle(step, error)
    }
  }
}

const notFound = () => new AppError('plant_not_found')
const tooLate = () => new AppError('store_busy', { cause: 'writes before this one took too long' })

/** Says why each create was refused. What was written stays written, even if the users cannot be read. */
async function explainCreates(
  refused: readonly PlantWrite[],
  existingUsers: QueueOptions['existingUsers'],
): Promise<(plant: PlantWrite) => unknown> {
  try {
    const users = new Set(refused.map(({ user }) => user))
    const existing = users.size === 0 ? users : await existingUsers([...users])
    return ({ user }) => new AppError(existing.has(user) ? 'plant_exists' : 'token_invalid')
  } catch (error) {
    return () => error
  }
}

/** Refuses writes that waited too long for other transactions. */
function refuseLocked(step: Step, error: AppError, observer: StoreObserver | undefined): void {
  for (const _ of step.waiters) observer?.recordRefusal('locked')
  settle(step, error)
}

function loadOf(steps: ReturnType<typeof waitingSteps>, groups: readonly Step[]): StoreLoad {
  const nowMs = performance.now()
  const oldestMs = Math.min(nowMs, steps.oldest()?.askedAtMs ?? nowMs, ...groups.map(({ askedAtMs }) => askedAtMs))
  return { waitingWrites: steps.size.writes + countWrites(groups), longestWaitMs: nowMs - oldestMs }
}

const countWrites = (steps: readonly Step[]): number => steps.reduce((sum, { waiters }) => sum + waiters.length, 0)
