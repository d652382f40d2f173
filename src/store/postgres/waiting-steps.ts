import { AppError } from '../../domain/error.ts'
import { isGroupFull, type WriteLoad } from '../limits.ts'
import type { PlantWrite, WriteKind } from './group-statements.ts'

/** A request that waits for the result of its write. */
export interface Waiter {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** A write that a request asks for. */
export interface WriteRequest {
  readonly kind: WriteKind
  /** `undefined` for a probe, which only tests whether a write is possible. */
  readonly plant: PlantWrite | undefined
  readonly textLength: number
  readonly askedAtMs: number
}

/**
 * A write, with the equal writes of the same key that were asked for right after it. One statement answers all of them: of
 * several creates only the first can store its plant, and of several deletes only the first can find one.
 */
export interface Step extends WriteRequest {
  /** Writes of one key follow each other. A probe has a key of its own. */
  readonly key: string | symbol
  readonly waiters: Waiter[]
}

/** Gives the first request of a step its result, and the later ones the result that follows from it. */
export function settle({ kind, waiters }: Step, error: unknown): void {
  const [first, ...later] = waiters.splice(0)
  if (error === undefined) first?.resolve()
  else first?.reject(error)
  const laterError = error ?? new AppError(kind === 'create' ? 'plant_exists' : 'plant_not_found')
  for (const { reject } of later) reject(laterError)
}

/** The steps of each key, in the order in which they were asked for. Only the first step of a key is ready for a group. */
function stepChains() {
  const chains = new Map<Step['key'], Step[]>()
  const ready: Readonly<Record<WriteKind, Step[]>> = { create: [], delete: [] }
  return {
    all: (): readonly Step[] => [...chains.values()].flat(),
    last: (key: Step['key']): Step | undefined => chains.get(key)?.at(-1),
    countReady: (kind: WriteKind): number => ready[kind].length,
    takeReady: (kind: WriteKind): Step | undefined => ready[kind].shift(),
    append(step: Step): void {
      const chain = chains.get(step.key) ?? []
      chain.push(step)
      chains.set(step.key, chain)
      if (chain.length === 1) ready[step.kind].push(step)
    },
    /** Ends the first step of a key. Then the next one is ready. */
    end({ key }: Step): void {
      const chain = chains.get(key)
      chain?.shift()
      const next = chain?.[0]
      if (next === undefined) chains.delete(key)
      else ready[next.kind].push(next)
    },
  }
}

/** The writes that have no result yet. Steps of different keys run in any order. */
export function waitingSteps() {
  const chains = stepChains()
  /** The steps that are neither in a group nor withdrawn, oldest first. */
  const waiting = new Set<Step>()
  const size = { writes: 0, textLength: 0 }

  const remove = (step: Step) => {
    waiting.delete(step)
    size.writes -= step.waiters.length
    size.textLength -= step.waiters.length * step.textLength
  }

  return {
    /** The writes that wait for a group. */
    size: size as WriteLoad,
    all: chains.all,
    countReady: chains.countReady,
    /** Ends a step of a group. */
    end: chains.end,
    /** Adds a write to the last step of its key if that step is equal and waits, or as a new step. */
    add(request: WriteRequest, waiter: Waiter): void {
      const { kind, plant } = request
      const key = plant === undefined ? Symbol('probe') : `${plant.user} ${plant.id}`
      let step = chains.last(key)
      if (step === undefined || step.kind !== kind || !waiting.has(step)) {
        step = { ...request, key, waiters: [] }
        waiting.add(step)
        chains.append(step)
      }
      step.waiters.push(waiter)
      size.writes++
      size.textLength += step.textLength
    },
    /** Takes steps that are ready, up to a full group. */
    takeGroup(kind: WriteKind): readonly Step[] {
      const group: Step[] = []
      let textLength = 0
      while (!isGroupFull({ writes: group.length, textLength })) {
        const step = chains.takeReady(kind)
        if (step === undefined) break
        if (waiting.has(step)) {
          remove(step)
          textLength += step.textLength
          group.push(step)
        } else chains.end(step)
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
