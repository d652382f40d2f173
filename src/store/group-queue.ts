import { AppError, type ErrorKind } from '../domain/error.ts'
import type { StoreObserver } from '../domain/store.ts'
import { isGroupFull, isQueueFull, LOCK_MAX_WAIT_MS, QUEUE_MAX_WAIT_MS } from './limits.ts'
import { linger } from './linger.ts'

/** How long the queue waits before it tries a locked database again. */
const LOCK_RETRY_MS = 5

/** A write as its engine describes it. */
export interface Write<Lane, Content> {
  /** The writes of a lane are committed one group after the other, those of different lanes at the same time. */
  readonly lane: Lane
  readonly content: Content
  readonly textLength: number
  /** Writes with the same key are committed in the order in which they were asked for, whatever their lanes are. */
  readonly key?: string
  /** The group of this write holds no later write with its key. */
  readonly isLastOfKey?: boolean
}

/**
 * `done`: every write of the group was done and returned nothing, which is the usual case. `locked`: another process has locked
 * the database, and nothing was written. Otherwise the results by the index of the write; one without a result was done.
 */
export type GroupOutcome =
  | 'done'
  | 'locked'
  | {
      readonly refused: Iterable<readonly [index: number, kind: ErrorKind, message?: string]>
      readonly returned?: Iterable<readonly [index: number, value: unknown]>
    }

interface QueueOptions<Lane extends string, Content> {
  /** Commits a group of a lane. Rejects if all of its writes failed. */
  readonly perform: Readonly<Record<Lane, (group: readonly Content[]) => Promise<GroupOutcome>>>
  readonly observer: StoreObserver | undefined
}

/** A write that has no result yet. */
interface Asked<Lane, Content> extends Write<Lane, Content> {
  readonly askedAtMs: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Commits writes in groups. When a lane is free, its next group takes the writes that wait, up to a full group. They share one
 * commit, and each write gets its own result after it. A write that no group has taken after `QUEUE_MAX_WAIT_MS` is refused. While
 * another process locks the database, writes wait for `LOCK_MAX_WAIT_MS` instead.
 */
export function queueGroups<Lane extends string, Content>({ perform, observer }: QueueOptions<Lane, Content>) {
  const waiting = keepWaiting<Lane, Content>(observer)
  /** The groups under way, and the lanes that take one group after the other. */
  const groups = new Map<Lane, readonly Asked<Lane, Content>[]>()
  const running = new Map<Lane, Promise<void>>()

  const hasWaiting = (lane: Lane): boolean => waiting.writes.some((write) => write.lane === lane)
  const start = (lane: Lane) => {
    if (!running.has(lane) && hasWaiting(lane)) running.set(lane, run(lane))
  }
  const run = async (lane: Lane) => {
    while (hasWaiting(lane)) {
      await linger(() => waiting.writes.length)
      const group = waiting.takeGroup(lane, [...groups.values()].flat())
      // Another lane commits earlier writes with these keys. It starts this lane after that.
      if (group.length === 0) break
      groups.set(lane, group)
      const isLocked = (await commit(group, perform[lane], observer)) === 'locked'
      groups.delete(lane)
      if (isLocked) {
        waiting.putBack(group)
        await Bun.sleep(LOCK_RETRY_MS)
      }
      for (const other in perform) start(other)
    }
    running.delete(lane)
  }

  return {
    /** Resolves to the result of the write once it is durable. Rejects with the refusal of the write, or with its failure. */
    write(write: Write<Lane, Content>): Promise<unknown> {
      const result = waiting.ask(write)
      start(write.lane)
      return result
    },
    /** The writes that are not durable yet, those of the groups under way included. */
    load() {
      const unfinished = [...groups.values(), waiting.writes]
      const nowMs = performance.now()
      const askedAtMs = unfinished.map(([oldest]) => oldest?.askedAtMs ?? nowMs)
      return { waitingWrites: unfinished.flat().length, longestWaitMs: nowMs - Math.min(...askedAtMs) }
    },
    /** Refuses all writes from now on, waiting ones included. Resolves when the groups under way have their results. */
    async refuse(error: AppError): Promise<void> {
      waiting.refuseAll(error)
      await Promise.all(running.values())
    },
  }
}

/** Keeps the writes that no group has taken, and refuses those that have no room or wait for too long. */
function keepWaiting<Lane, Content>(observer: StoreObserver | undefined) {
  /** In the order in which they were asked for. */
  const writes: Asked<Lane, Content>[] = []
  let textLength = 0
  let lockedAtMs = Number.NEGATIVE_INFINITY
  let lateTimer: Timer | undefined
  let refusal: AppError | undefined

  const refuseAskedBefore = (timeMs: number, error: AppError, reason?: 'queue_full' | 'locked') => {
    const end = writes.findIndex(({ askedAtMs }) => askedAtMs > timeMs)
    for (const write of writes.splice(0, end < 0 ? writes.length : end)) {
      textLength -= write.textLength
      if (reason !== undefined) observer?.recordRefusal(reason)
      write.reject(error)
    }
  }
  /** One timer for the oldest write is enough. It is not cleared when a group takes the write, so it is set twice a second at most. */
  const refuseLate = () => {
    const lateMs = performance.now() - QUEUE_MAX_WAIT_MS
    if (lockedAtMs <= lateMs) refuseAskedBefore(lateMs, new AppError('store_busy'), 'queue_full')
    const [oldest] = writes
    lateTimer = oldest && setTimeout(refuseLate, Math.max(oldest.askedAtMs, lockedAtMs) - lateMs)
  }

  return {
    writes: writes as readonly Asked<Lane, Content>[],
    ask(write: Write<Lane, Content>): Promise<unknown> {
      if (refusal !== undefined) return Promise.reject(refusal)
      if (isQueueFull({ writes: writes.length, textLength }, write.textLength)) {
        observer?.recordRefusal('queue_full')
        return Promise.reject(new AppError('store_busy'))
      }
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      writes.push({ ...write, askedAtMs: performance.now(), resolve, reject })
      textLength += write.textLength
      lateTimer ??= setTimeout(refuseLate, QUEUE_MAX_WAIT_MS)
      return promise
    },
    /** Takes the next group of a lane, up to a full one. */
    takeGroup(lane: Lane, underWay: readonly Asked<Lane, Content>[]): readonly Asked<Lane, Content>[] {
      const { group, passed } = nextGroup(writes, lane, underWay)
      writes.splice(0, group.length + passed.length, ...passed)
      for (const write of group) textLength -= write.textLength
      return group
    },
    /** The writes of a group that found the database locked go on waiting, but not for longer than `LOCK_MAX_WAIT_MS` in all. */
    putBack(group: readonly Asked<Lane, Content>[]): void {
      writes.unshift(...group)
      for (const write of group) textLength += write.textLength
      lockedAtMs = performance.now()
      if (refusal !== undefined) refuseAskedBefore(lockedAtMs, refusal)
      else refuseAskedBefore(lockedAtMs - LOCK_MAX_WAIT_MS, new AppError('store_busy', { cause: LOCKED }), 'locked')
    },
    refuseAll(error: AppError): void {
      refusal ??= error
      refuseAskedBefore(Number.POSITIVE_INFINITY, refusal)
      clearTimeout(lateTimer)
    },
  }
}

const LOCKED = 'another process keeps the database locked'

/** The writes that the next group of a lane takes, and those of other groups that it passed. */
function nextGroup<Lane, Content>(
  waiting: readonly Asked<Lane, Content>[],
  lane: Lane,
  underWay: readonly Asked<Lane, Content>[],
) {
  const blocked = new Set<string | undefined>(underWay.map(({ key }) => key))
  const [group, passed]: [Asked<Lane, Content>[], Asked<Lane, Content>[]] = [[], []]
  const load = { writes: 0, textLength: 0 }
  for (const write of waiting) {
    if (isGroupFull(load)) break
    const isTaken = write.lane === lane && (write.key === undefined || !blocked.has(write.key))
    if (!isTaken || write.isLastOfKey) blocked.add(write.key)
    if (isTaken) {
      load.writes = group.push(write)
      load.textLength += write.textLength
    } else passed.push(write)
  }
  return { group, passed }
}

/** Commits a group and gives its writes their results, unless the database is locked. */
async function commit<Content>(
  group: readonly Asked<unknown, Content>[],
  perform: (group: readonly Content[]) => Promise<GroupOutcome>,
  observer: StoreObserver | undefined,
): Promise<GroupOutcome | undefined> {
  try {
    const outcome = await perform(group.map(({ content }) => content))
    if (outcome === 'locked') return outcome
    if (outcome !== 'done') {
      for (const [index, kind, message = ''] of outcome.refused) group[index]?.reject(new AppError(kind, { message }))
      for (const [index, value] of outcome.returned ?? []) group[index]?.resolve(value)
    }
    // A promise that has its result already ignores this.
    for (const { resolve } of group) resolve(undefined)
  } catch (error) {
    const isBusy = error instanceof AppError && error.kind === 'store_busy'
    for (const { reject } of group) {
      if (isBusy) observer?.recordRefusal('locked')
      reject(error)
    }
  }
}
