import { AppError } from '../../../domain/error.ts'
import { isGroupFull, type WriteLoad } from '../../limits.ts'
import type { PlantWrite, WriteKind } from './group-statements.ts'

/**
 * A write, with the equal writes of the same key that were asked for right after it. One statement answers all of them: of
 * several creates only the first can store its plant, and of several deletes only the first can find one.
 */
export interface Step {
  readonly kind: WriteKind
  /** `undefined` for a probe, which only tests whether a write is possible. */
  readonly plant: PlantWrite | undefined
  /** The user and the id of the plant. A probe has a key of its own. */
  readonly key: string | symbol
  readonly textLength: number
  readonly askedAtMs: number
  /** The requests that wait for the result. */
  readonly waiters: PromiseWithResolvers<void>[]
  /** The next step of the same key, which may begin when this one has ended. */
  next?: Step
}

/** Gives the first request of a step its result, and the later ones the result that follows from it. */
export function settle({ kind, waiters }: Step, error: unknown): void {
  const [first, ...later] = waiters.splice(0)
  if (error === undefined) first?.resolve()
  else first?.reject(error)
  const laterError = error ?? new AppError(kind === 'create' ? 'plant_exists' : 'plant_not_found')
  for (const { reject } of later) reject(laterError)
}

/** The order of steps: of one key as they were asked for, and of different keys any. */
function orderSteps() {
  const lastOfKey = new Map<Step['key'], Step>()
  /** The first step of each key, until a group takes it. */
  const ready: Readonly<Record<WriteKind, Step[]>> = { create: [], delete: [] }
  return {
    lastOf: (key: Step['key']): Step | undefined => lastOfKey.get(key),
    countReady: (kind: WriteKind): number => ready[kind].length,
    takeReady: (kind: WriteKind): Step | undefined => ready[kind].shift(),
    append(step: Step): void {
      const last = lastOfKey.get(step.key)
      lastOfKey.set(step.key, step)
      if (last === undefined) ready[step.kind].push(step)
      else last.next = step
    },
    /** Ends a step: the next one of its key is ready. */
    end({ key, next }: Step): void {
      if (next === undefined) lastOfKey.delete(key)
      else ready[next.kind].push(next)
    },
  }
}

/** The writes that have no result yet. */
export function waitingSteps() {
  const order = orderSteps()
  /** The steps that are neither in a group nor withdrawn, oldest first. */
  const waiting = new Set<Step>()
  const size = { writes: 0, textLength: 0 }

  const remove = (step: Step) => {
    waiting.delete(step)
    size.writes -= step.waiters.length
    size.textLength -= step.waiters.length * step.textLength
  }
  return {
    /** How much waits for a group. */
    size: size as WriteLoad,
    oldest: (): Step | undefined => waiting.values().next().value,
    countReady: order.countReady,
    /** Ends a step of a group. */
    end: order.end,
    /** Adds a write to the last step of its key if that step is equal and waits, or as a new step. */
    add(kind: WriteKind, plant: PlantWrite | undefined, textLength: number): Promise<void> {
      const key = plant === undefined ? Symbol('probe') : `${plant.user} ${plant.id}`
      let step = order.lastOf(key)
      if (step === undefined || step.kind !== kind || !waiting.has(step)) {
        step = { kind, plant, key, textLength, askedAtMs: performance.now(), waiters: [] }
        waiting.add(step)
        order.append(step)
      }
      const waiter = Promise.withResolvers<void>()
      step.waiters.push(waiter)
      size.writes++
      size.textLength += step.textLength
      return waiter.promise
    },
    /** Takes steps that are ready, up to a full group. */
    takeGroup(kind: WriteKind): readonly Step[] {
      const group: Step[] = []
      let textLength = 0
      while (!isGroupFull({ writes: group.length, textLength })) {
        const step = order.takeReady(kind)
        if (step === undefined) break
        if (waiting.has(step)) {
          remove(step)
          textLength += step.textLength
          group.push(step)
        } else order.end(step)
      }
      return group
    },
    /** Takes all steps that were asked for before this time. They get into no group. */
    withdraw(askedBeforeMs: number): readonly Step[] {
      const withdrawn: Step[] = []
      for (const step of waiting) {
        if (step.askedAtMs >= askedBeforeMs) break
        withdrawn.push(step)
        remove(step)
      }
      return withdrawn
    },
  }
}
