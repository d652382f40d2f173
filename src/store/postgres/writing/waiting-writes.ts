import type { StoreLoad } from '../../../domain/statistics.ts'
import { isGroupFull, isQueueFull } from '../../limits.ts'
import type { PlantWrite, WriteKind } from './writer.ts'

/** A write that has no result yet. */
export interface Write {
  readonly kind: WriteKind
  readonly plant: PlantWrite
  /** The user and the id of the plant. */
  readonly key: string
  readonly textLength: number
  readonly askedAtMs: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  isInGroup: boolean
}

/** The writes of one plant: equal ones that a group may take now, and the later ones that wait until these have ended. */
interface Turn {
  /** `undefined` for a delete with values: another delete may find the plant although this one does not. */
  readonly kind: WriteKind | undefined
  unfinished: number
  readonly later: Write[]
}

/** The writes that have no result yet. Those of one plant are done in the order in which they were asked for. */
export function waitingWrites() {
  const unfinished = new Set<Write>()
  let textLength = 0
  const turns = new Map<string, Turn>()
  const ready: Readonly<Record<WriteKind, Write[]>> = { create: [], delete: [] }

  const admit = (write: Write) => {
    const turn = turns.get(write.key)
    const kind = write.kind === 'delete' && write.plant.values.length > 0 ? undefined : write.kind
    if (turn === undefined) turns.set(write.key, { kind, unfinished: 1, later: [] })
    else if (kind !== undefined && turn.kind === kind && turn.later.length === 0) turn.unfinished++
    else {
      turn.later.push(write)
      return
    }
    ready[write.kind].push(write)
  }
  const endTurn = (write: Write) => {
    const turn = turns.get(write.key)
    if (turn === undefined || --turn.unfinished > 0) return
    turns.delete(write.key)
    for (const next of turn.later) admit(next)
  }

  return {
    hasRoom: (forTextLength: number): boolean => !isQueueFull({ writes: unfinished.size, textLength }, forTextLength),
    countReady: (kind: WriteKind): number => ready[kind].length,
    load(): StoreLoad {
      const nowMs = performance.now()
      const [first] = unfinished
      return { waitingWrites: unfinished.size, longestWaitMs: nowMs - (first?.askedAtMs ?? nowMs) }
    },
    add(write: Write): void {
      unfinished.add(write)
      textLength += write.textLength
      admit(write)
    },
    /** Takes writes that are ready, up to a full group. */
    takeGroup(kind: WriteKind): readonly Write[] {
      const group: Write[] = []
      const load = { writes: 0, textLength: 0 }
      while (!isGroupFull(load)) {
        const write = ready[kind].shift()
        if (write === undefined) break
        if (unfinished.has(write)) {
          write.isInGroup = true
          load.writes = group.push(write)
          load.textLength += write.textLength
        } else endTurn(write)
      }
      return group
    },
    /** The writes that no group has taken and that were asked for before this time. */
    *askedBefore(timeMs: number): Generator<Write> {
      for (const write of unfinished) {
        if (write.askedAtMs >= timeMs) return
        if (!write.isInGroup) yield write
      }
    },
    /** Gives a write its result. One that no group has taken gets into none. */
    finish(write: Write, error?: unknown): void {
      unfinished.delete(write)
      textLength -= write.textLength
      if (error === undefined) write.resolve()
      else write.reject(error)
      if (write.isInGroup) endTurn(write)
    },
  }
}
