import { AppError } from '../../domain/error.ts'
import { nextTurn } from '../../domain/next-turn.ts'
import type { StoreLoad, StoreObserver } from '../../domain/statistics.ts'
import { textLength } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { GROUP_MAX_TEXT_LENGTH, GROUP_MAX_WRITES, QUEUE_MAX_TEXT_LENGTH, QUEUE_MAX_WRITES } from '../limits.ts'
import type { PlantRow, WriteKind, Writer } from './ledger.ts'

/** Turns of the event loop, each with whatever requests have come, for which a group may wait before it begins. */
const GATHER_TURNS_MAX = 2
/** How long a write may wait for its turn, and how often it is looked whether one has. */
const WAIT_TIMEOUT_MS = 1500
const LOOK_MS = 250

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Equal writes of one key that follow each other. What becomes of the first decides what the others are told: of several
 * creates at most the first stores its plant, of several deletes the first alone finds one.
 */
interface Step {
  readonly kind: WriteKind
  /** Nothing for a write of nothing, which tells whether one is possible. */
  readonly row: PlantRow | undefined
  readonly textLength: number
  /** Until when it may wait for its turn. */
  readonly deadlineMs: number
  readonly waiting: Waiting[]
  isUnderWay: boolean
}

/** The plants that wait to be written, and the one way to it. */
export type WriteQueue = ReturnType<typeof queueWrites>

interface QueueOptions {
  readonly writers: Readonly<Record<WriteKind, Writer>>
  /** Which of these users there are. */
  readonly existing: (users: readonly UserId[]) => Promise<ReadonlySet<UserId>>
  readonly monotonicMs: () => number
  readonly observer: StoreObserver | undefined
}

/**
 * Writes plants in groups: all that wait when the writer of their kind becomes free are one statement, and each gets an
 * answer of its own after it. What concerns one plant is done in the order in which it was asked for; what concerns
 * several, in no order.
 */
export function queueWrites({ writers, existing, monotonicMs, observer }: QueueOptions) {
  /** The steps of each key, of which the first alone may be under way. */
  const chains = new Map<string, Step[]>()
  const ready: Readonly<Record<WriteKind, Step[]>> = { create: [], delete: [] }
  const running: Partial<Record<WriteKind, Promise<void>>> = {}
  const underWay: Record<WriteKind, readonly Step[]> = { create: [], delete: [] }
  let waitingWrites = 0
  let waitingTextLength = 0
  let refusal: AppError | undefined
  let looking: Timer | undefined

  const stepsThatWait = () =>
    [...ready.create, ...ready.delete, ...[...chains.values()].flat()].filter(({ isUnderWay }) => !isUnderWay)
  /** Those whose time has come are refused, though the writer is not free: nothing of them was sent. */
  const look = () => {
    const nowMs = monotonicMs()
    for (const step of stepsThatWait()) if (step.deadlineMs < nowMs) refuseLate(step)
    if (waitingWrites > 0) return
    clearInterval(looking)
    looking = undefined
  }
  const refuseLate = (step: Step) => {
    if (step.waiting.length === 0) return
    observer?.recordRefusal('locked')
    waitingWrites -= step.waiting.length
    waitingTextLength -= step.textLength * step.waiting.length
    settle(step, new AppError('store_busy', { cause: 'writes before this one took too long' }))
  }

  const run = async (kind: WriteKind) => {
    while (ready[kind].length > 0) {
      await gather(ready[kind])
      const group = takeGroup(kind)
      if (group.length > 0) await perform(kind, group)
    }
    delete running[kind]
  }

  const takeGroup = (kind: WriteKind): readonly Step[] => {
    const nowMs = monotonicMs()
    const group: Step[] = []
    let length = 0
    while (group.length < GROUP_MAX_WRITES && length < GROUP_MAX_TEXT_LENGTH) {
      const step = ready[kind].shift()
      if (step === undefined) break
      step.isUnderWay = true
      if (step.deadlineMs < nowMs) {
        refuseLate(step)
        follow(step)
        continue
      }
      waitingWrites -= step.waiting.length
      waitingTextLength -= step.textLength * step.waiting.length
      length += step.textLength
      group.push(step)
    }
    return group
  }

  const perform = async (kind: WriteKind, group: readonly Step[]) => {
    const steps = group.filter((step) => step.row !== undefined)
    const startMs = monotonicMs()
    underWay[kind] = group
    try {
      const refused = await writers[kind].perform(rowsOf(steps))
      observer?.recordGroup(countWrites(group), monotonicMs() - startMs)
      const strangers = kind === 'create' ? await strangersAmong(steps, refused) : NOBODY
      for (const [place, step] of steps.entries()) {
        settle(step, refused.has(place) ? refusalOf(step, strangers) : undefined)
      }
      for (const step of group) if (step.row === undefined) settle(step, undefined)
    } catch (error) {
      const isLocked = error instanceof AppError && error.kind === 'store_busy'
      for (let count = isLocked ? countWrites(group) : 0; count > 0; count--) observer?.recordRefusal('locked')
      for (const step of group) settle(step, error)
    }
    underWay[kind] = []
    for (const step of group) follow(step)
  }

  /** A plant that was not stored is there already, unless there is no such user. */
  const strangersAmong = async (steps: readonly Step[], refused: ReadonlySet<number>) => {
    const users = new Set(rowsOf(steps.filter((_, place) => refused.has(place))).map(({ user }) => user))
    if (users.size === 0) return NOBODY
    // What was stored is stored, whatever becomes of this.
    const found = await existing([...users]).catch((error: unknown) => error)
    return found instanceof Set ? users.difference(found) : found
  }

  /** The next step of the same key gets ready. */
  const follow = ({ row }: Step) => {
    if (row === undefined) return
    const key = keyOf(row)
    const chain = chains.get(key)
    chain?.shift()
    const [next] = chain ?? []
    if (next === undefined) chains.delete(key)
    else start(next)
  }

  const start = (step: Step) => {
    ready[step.kind].push(step)
    running[step.kind] ??= run(step.kind)
  }

  const ask = (kind: WriteKind, row: PlantRow | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      if (refusal !== undefined) return reject(refusal)
      const length = row === undefined || kind === 'delete' ? 0 : textLength({ ...row, tag: row.tag ?? '' })
      const isFull = waitingTextLength > 0 && waitingTextLength + length > QUEUE_MAX_TEXT_LENGTH
      if (isFull || waitingWrites >= QUEUE_MAX_WRITES) {
        observer?.recordRefusal('queue_full')
        return reject(new AppError('store_busy'))
      }
      waitingWrites++
      looking ??= setInterval(look, LOOK_MS)
      const chain = (row && chains.get(keyOf(row))) ?? []
      const last = chain.at(-1)
      if (last?.kind === kind && !last.isUnderWay) {
        waitingTextLength += last.textLength
        last.waiting.push({ resolve, reject })
        return
      }
      waitingTextLength += length
      const deadlineMs = monotonicMs() + WAIT_TIMEOUT_MS
      const step: Step = {
        kind,
        row,
        textLength: length,
        deadlineMs,
        waiting: [{ resolve, reject }],
        isUnderWay: false,
      }
      chain.push(step)
      if (row !== undefined) chains.set(keyOf(row), chain)
      if (chain.length === 1) start(step)
    })

  return {
    create: (row: PlantRow) => ask('create', row),
    delete: (user: UserId, id: bigint) => ask('delete', { user, id, name: '', tag: null }),
    /** Resolves if a write is possible now: it writes nothing, durably. */
    probe: () => ask('create', undefined),
    /** Writes that are not durable yet, those of the groups that are being written included. */
    load(): StoreLoad {
      const groups = [...underWay.create, ...underWay.delete]
      const waiting = [...groups, ...ready.create, ...ready.delete].filter((step) => step.waiting.length > 0)
      const oldestMs = Math.min(...waiting.map(({ deadlineMs }) => deadlineMs - WAIT_TIMEOUT_MS))
      return {
        waitingWrites: waitingWrites + countWrites(groups),
        longestWaitMs: Number.isFinite(oldestMs) ? monotonicMs() - oldestMs : 0,
      }
    },
    /** From now on refuses every write, those that wait included. Resolves when the last groups have been answered. */
    async refuse(error: AppError): Promise<void> {
      refusal ??= error
      for (const step of stepsThatWait()) settle(step, refusal)
      ready.create.length = 0
      ready.delete.length = 0
      clearInterval(looking)
      for (const chain of chains.values()) chain.splice(1)
      waitingWrites = 0
      waitingTextLength = 0
      await Promise.all(Object.values(running))
    },
  }
}

const NOBODY: ReadonlySet<UserId> = new Set()

/** Why a step was refused, or could not be told: `strangers` is then the error. */
function refusalOf({ kind, row }: Step, strangers: unknown): unknown {
  if (kind === 'delete') return new AppError('plant_not_found')
  if (!(strangers instanceof Set)) return strangers
  return new AppError(strangers.has(row?.user) ? 'token_invalid' : 'plant_exists')
}

/** Tells all who wait for a step what became of it. */
function settle({ kind, waiting }: Step, error: unknown): void {
  const [first, ...others] = waiting.splice(0)
  if (error === undefined) first?.resolve()
  else first?.reject(error)
  const after = error ?? new AppError(kind === 'create' ? 'plant_exists' : 'plant_not_found')
  for (const { reject } of others) reject(after)
}

/** Waits as long as turns of the event loop bring more, but not for long: larger groups cost less. */
async function gather(ready: readonly Step[]): Promise<void> {
  let before = -1
  for (let turn = 0; turn < GATHER_TURNS_MAX && before < ready.length; turn++) {
    before = ready.length
    await nextTurn()
  }
}

const countWrites = (steps: readonly Step[]): number => steps.reduce((sum, { waiting }) => sum + waiting.length, 0)

const rowsOf = (steps: readonly Step[]): readonly PlantRow[] =>
  steps.flatMap(({ row }) => (row === undefined ? [] : [row]))

const keyOf = ({ user, id }: PlantRow): string => `${user} ${id}`
