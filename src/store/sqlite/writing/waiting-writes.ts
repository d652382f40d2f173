import { GROUP_MAX_WRITES, isGroupFull, isQueueFull } from '../../limits.ts'
import type { Call } from './writes.ts'

/** How long a write may have to wait. The queue estimates that from the latest full groups, and refuses further writes. */
export const QUEUE_MAX_WAIT_MS = 500
/** The weight of the latest full group in the estimate. */
const LATEST_GROUP_WEIGHT = 0.2

/** A write that waits for its result. */
export interface WaitingWrite {
  readonly call: Call
  readonly textLength: number
  readonly askedAtMs: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The writes that wait for a group, in the order in which they were asked for. */
export function waitingWrites() {
  const waiting: WaitingWrite[] = []
  let textLength = 0
  /** The estimated milliseconds per write of a full group. Smaller groups do not tell how long many writes take. */
  let writeMs = 0

  const remove = (count: number): readonly WaitingWrite[] => {
    const removed = waiting.splice(0, count)
    for (const write of removed) textLength -= write.textLength
    return removed
  }

  return {
    first: (): WaitingWrite | undefined => waiting[0],
    count: (): number => waiting.length,
    hasFullGroup: (): boolean => isGroupFull({ writes: waiting.length, textLength }),
    hasRoom(forTextLength: number): boolean {
      if (isQueueFull({ writes: waiting.length, textLength }, forTextLength)) return false
      // A full group may always wait. Otherwise nothing would show that the disk is fast again.
      return waiting.length < GROUP_MAX_WRITES || waiting.length * writeMs <= QUEUE_MAX_WAIT_MS
    },
    add(write: WaitingWrite): void {
      waiting.push(write)
      textLength += write.textLength
    },
    /** Puts writes of a group back, in front of the others. */
    putBack(writes: readonly WaitingWrite[]): void {
      waiting.unshift(...writes)
      for (const write of writes) textLength += write.textLength
    },
    /** Takes the next writes, up to a full group. */
    takeGroup(): readonly WaitingWrite[] {
      const group = { writes: 0, textLength: 0 }
      while (group.writes < waiting.length && !isGroupFull(group)) {
        group.textLength += waiting[group.writes]?.textLength ?? 0
        group.writes++
      }
      return remove(group.writes)
    },
    takeAll: (): readonly WaitingWrite[] => remove(waiting.length),
    /** Records how long a group took. */
    recordDuration(writes: number, groupMs: number): void {
      if (writes < GROUP_MAX_WRITES) return
      const latestMs = groupMs / writes
      writeMs = writeMs === 0 ? latestMs : writeMs + LATEST_GROUP_WEIGHT * (latestMs - writeMs)
    },
  }
}
