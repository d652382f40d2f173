import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError, type ErrorKind, kindOf } from '../error.ts'
import type { EngineObserver } from './observer.ts'

/** Writes that may wait, and the UTF-16 code units of their texts. More are refused, but a text of any length may wait alone. */
export const QUEUE_MAX_WRITES = 16_384
export const QUEUE_MAX_TEXT_LENGTH = 16 * 1024 * 1024
/** What makes a group full. A group that takes more would make its first write wait for too many others. */
export const GROUP_MAX_WRITES = 512
export const GROUP_MAX_TEXT_LENGTH = 1024 * 1024
/**
 * How long a write may wait until its group begins: while more writes wait before it than the next group can take, while it is
 * one of those that the next group takes, and while another process has locked the database. The second one is longer than a
 * usual stall of the disk, so that such a stall alone refuses nobody.
 */
export const QUEUE_DEADLINES = { queueMs: 500, nextGroupMs: 1500, lockMs: 2000 }
export type QueueDeadlines = Readonly<typeof QUEUE_DEADLINES>
export const LOCK_MAX_WAIT_MS = QUEUE_DEADLINES.lockMs
/** Turns of the event loop for which a group waits at most. Each turn may bring the writes of further requests. */
const LINGER_TURNS_MAX = 2
/** How often the queue looks for writes that have waited for too long. */
const LOOK_FOR_LATE_MS = 20
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
  /** The writes of a group with the same key have the same run. A write with a key and without a run is alone with its key. */
  readonly run?: string | undefined
}

/** `done`: every write was done and returned nothing. `locked`: another process has locked the database, so nothing was. */
export type GroupOutcome = 'done' | 'locked' | WriteResults

/** The results of the writes of a group by their index in it. A write without one was done and returned nothing. */
export interface WriteResults {
  readonly refused: Iterable<readonly [index: number, kind: ErrorKind, message?: string]>
  readonly returned?: Iterable<readonly [index: number, value: unknown]>
}

interface QueueOptions<Lane extends string, Content> {
  /** Commits a group of a lane. Rejects if all of its writes failed. */
  readonly perform: Readonly<Record<Lane, (group: readonly Content[]) => Promise<GroupOutcome>>>
  readonly observer: EngineObserver | undefined
  /** How many threads with a queue share the limits of the process. */
  readonly threads?: number | undefined
  /** `QUEUE_DEADLINES` if left out. */
  readonly deadlines?: QueueDeadlines | undefined
}

/** How many writes, and with how much text, make a group full. */
type GroupSize = Readonly<Record<'writes' | 'textLength', number>>

/** A write that has no result yet. */
interface QueuedWrite<Lane, Content> extends Write<Lane, Content> {
  /** The length of all texts that were asked for before this one. */
  readonly textBefore: number
  readonly askedAtMs: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Commits writes in groups. When a lane is free, its next group takes the writes that wait, up to a full group. They share one
 * commit, and each write gets its own result after it. A write that no group has taken is refused: after `nextGroupMs` if only a
 * slow group is before it, and after `queueMs` if a full group waits before it. While another process locks the database, all
 * writes wait for `lockMs`.
 */
export function queueGroups<Lane extends string, Content>(options: QueueOptions<Lane, Content>) {
  const { perform, observer, threads = 1, deadlines = QUEUE_DEADLINES } = options
  /** The writes that no group has taken, in the order in which they were asked for. */
  const waiting: QueuedWrite<Lane, Content>[] = []
  const full = { writes: Math.floor(GROUP_MAX_WRITES / threads), textLength: GROUP_MAX_TEXT_LENGTH / threads }
  const limit = limitWaits(waiting, full, deadlines, observer)
  /** The groups under way, and the lanes that take one group after the other. */
  const groups = new Map<Lane, readonly QueuedWrite<Lane, Content>[]>()
  const running = new Map<Lane, Promise<void>>()
  /** The lanes whose last write was alone until it was committed. The next one probably is, too, and waits for no others. */
  const wasAlone = new Set<Lane>()
  let textLength = 0
  let refusal: Error | undefined
  const hasWaiting = (lane: Lane) => waiting.some((write) => write.lane === lane)
  const run = async (lane: Lane) => {
    do {
      await (wasAlone.delete(lane) ? undefined : linger(waiting, full))
      const group = takeGroup(waiting, lane, [...groups.values()].flat(), full)
      // Another lane commits earlier writes with these keys. It starts this lane after that.
      if (group.length === 0) break
      groups.set(lane, group)
      const isLocked = (await commit(group, perform[lane], observer)) === 'locked'
      groups.delete(lane)
      if (group.length === 1 && waiting.length === 0) wasAlone.add(lane)
      if (isLocked) {
        waiting.unshift(...group)
        await limit.waitForLock(refusal)
      }
      for (const other in perform) if (!running.has(other) && hasWaiting(other)) running.set(other, run(other))
    } while (hasWaiting(lane))
    running.delete(lane)
  }
  return {
    /** Resolves to the result of the write once it is durable. Rejects with the refusal of the write, or with its failure. */
    write(write: Write<Lane, Content>): Promise<unknown> {
      if (refusal !== undefined) return Promise.reject(refusal)
      const waitingText = textLength - (waiting[0]?.textBefore ?? textLength)
      const hasText = waitingText > 0 && waitingText + write.textLength > QUEUE_MAX_TEXT_LENGTH / threads
      if (hasText || waiting.length >= QUEUE_MAX_WRITES / threads) {
        observer?.recordRefusal('queue_full')
        return Promise.reject(new AppError('store_busy'))
      }
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      waiting.push({ ...write, textBefore: textLength, askedAtMs: performance.now(), resolve, reject })
      textLength += write.textLength
      // A write that finds no group before it is taken at once.
      if (running.size > 0) limit.begin()
      if (!running.has(write.lane)) running.set(write.lane, run(write.lane))
      return promise
    },
    /** The writes that are not durable yet, those of the groups under way included. */
    load: () => loadOf([...groups.values(), waiting]),
    /** Refuses all writes from now on, waiting ones included. Resolves when the groups under way have their results. */
    async refuse(error: Error): Promise<void> {
      refusal ??= error
      limit.end(refusal)
      await Promise.all(running.values())
    },
  }
}

function loadOf(unfinished: readonly (readonly QueuedWrite<unknown, unknown>[])[]) {
  const nowMs = performance.now()
  const askedAtMs = unfinished.map(([oldest]) => oldest?.askedAtMs ?? nowMs)
  return { waitingWrites: unfinished.flat().length, longestWaitMs: nowMs - Math.min(...askedAtMs) }
}

/** Refuses the writes that wait for too long. */
function limitWaits(
  waiting: QueuedWrite<unknown, unknown>[],
  full: GroupSize,
  { queueMs, nextGroupMs, lockMs }: QueueDeadlines,
  observer: EngineObserver | undefined,
) {
  let lockedAtMs = Number.NEGATIVE_INFINITY
  /** No group clears it. It runs while writes wait, so one look is enough for all of them. */
  let timer: Timer | undefined

  /** Refuses the writes behind the first ones that were asked for before a time. */
  const refuseAskedBefore = (timeMs: number, error: Error, reason?: 'queue_full' | 'locked', first = 0) => {
    const end = waiting.findIndex(({ askedAtMs }) => askedAtMs > timeMs)
    for (const { reject } of waiting.splice(first, Math.max(0, (end < 0 ? waiting.length : end) - first))) {
      if (reason !== undefined) observer?.recordRefusal(reason)
      reject(error)
    }
  }
  const refuseLate = async () => {
    const nowMs = performance.now()
    // If this thread stood still, the queue first takes what it can. Writes that come meanwhile are not late.
    for (let turn = 0; turn < LINGER_TURNS_MAX; turn++) await nextTurn()
    if (nowMs - lockedAtMs > queueMs) {
      refuseAskedBefore(nowMs - nextGroupMs, new AppError('store_busy'), 'queue_full')
      refuseAskedBefore(nowMs - queueMs, new AppError('store_busy'), 'queue_full', full.writes)
    }
    timer = waiting.length > 0 ? setTimeout(refuseLate, LOOK_FOR_LATE_MS) : undefined
  }
  return {
    begin(): void {
      timer ??= setTimeout(refuseLate, LOOK_FOR_LATE_MS)
    },
    /** The database is locked: the writes go on waiting, but not for longer than `lockMs` in all. */
    async waitForLock(refusal: Error | undefined): Promise<void> {
      lockedAtMs = performance.now()
      if (refusal !== undefined) refuseAskedBefore(lockedAtMs, refusal)
      else refuseAskedBefore(lockedAtMs - lockMs, new AppError('store_busy', { cause: LOCKED }), 'locked')
      await Bun.sleep(LOCK_RETRY_MS)
    },
    end(refusal: Error): void {
      clearTimeout(timer)
      refuseAskedBefore(Number.POSITIVE_INFINITY, refusal)
    },
  }
}

const LOCKED = 'another process keeps the database locked'

/** Waits while each turn of the event loop brings more writes, up to a full group: a larger group costs less per write. */
async function linger(waiting: readonly unknown[], full: GroupSize): Promise<void> {
  let before = -1
  for (let turn = 0; turn < LINGER_TURNS_MAX && before < waiting.length && waiting.length < full.writes; turn++) {
    before = waiting.length
    await nextTurn()
  }
}

/** Takes the next group of a lane, up to a full one. It leaves writes of other lanes, and those that have to wait for these. */
function takeGroup<Lane, Content>(
  waiting: QueuedWrite<Lane, Content>[],
  lane: Lane,
  underWay: readonly QueuedWrite<Lane, Content>[],
  full: GroupSize,
): readonly QueuedWrite<Lane, Content>[] {
  /** The runs that writes with a key must have. Those of `undefined` have to wait. */
  const runs = new Map(underWay.map(({ key }) => [key, undefined as string | undefined]))
  const [group, left]: [QueuedWrite<Lane, Content>[], QueuedWrite<Lane, Content>[]] = [[], []]
  let groupText = 0
  for (const write of waiting) {
    if (group.length >= full.writes || groupText >= full.textLength) break
    const { key, run } = write
    const mayJoin = key === undefined || !runs.has(key) || (run !== undefined && runs.get(key) === run)
    const isTaken = write.lane === lane && mayJoin
    if (key !== undefined) runs.set(key, isTaken ? run : undefined)
    if (isTaken) groupText += write.textLength
    const side = isTaken ? group : left
    side.push(write)
  }
  waiting.splice(0, group.length + left.length, ...left)
  return group
}

/** Commits a group and gives its writes their results, unless the database is locked. */
async function commit<Content>(
  group: readonly QueuedWrite<unknown, Content>[],
  perform: (group: readonly Content[]) => Promise<GroupOutcome>,
  observer: EngineObserver | undefined,
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
    const isBusy = kindOf(error) === 'store_busy'
    for (const { reject } of group) {
      if (isBusy) observer?.recordRefusal('locked')
      reject(error)
    }
  }
}
