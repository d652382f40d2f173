// Tested in test/http/page/page-changes.test.ts.
import { Refusal, refusalIn } from './client.ts'
import { countOf, describePlant } from './messages.ts'
import { Conflict, isSame, write } from './plants.ts'
import type { Plant } from './rows.ts'
import { set, shownWith, state } from './state.ts'

/**
 * Changes plants, and tells the text that `act` returns. Then the rows are as the server has said, and are read once. Returns the
 * refusal if `act` rejects, or if one of the plants is being changed, because a second click must not do it again.
 */
async function change(plants: readonly Plant[], act: (put: typeof write) => Promise<string>) {
  const ids = new Set(plants.map(({ id }) => id))
  if (plants.some(({ id }) => state.busy.has(id))) return new Refusal(0, 'This plant is being changed at the moment.')
  set({ busy: new Set([...state.busy, ...ids]), notice: '' })
  const said = new Map<string, Plant | undefined>()
  const outcome = await act(async (id, ...values) => {
    const done = await write(id, ...values)
    said.set(id, done.stored)
    return done
  }).catch(refusalIn)
  const notice = typeof outcome === 'string' ? outcome : ''
  const busy = new Set([...state.busy].filter((id) => !ids.has(id)))
  set({ busy, notice, changes: state.changes + 1, ...shownWith(said) })
  return outcome instanceof Refusal ? outcome : undefined
}

/** Stores a plant if the stored one is as it is `shown`: `undefined` if there is none. Otherwise returns a `Conflict`. */
export async function store(shown: Plant | undefined, wanted: Plant): Promise<Refusal | undefined> {
  const refusal = await change([wanted], async (put) => {
    const { stored: now } = await put(wanted.id, shown, wanted)
    if (!isSame(now, wanted)) throw new Conflict(shown, now)
    return `${shown ? 'Changed to' : 'Added'} ${describePlant(wanted)}.`
  })
  if (!refusal && !shown) set({ added: wanted.id })
  return refusal
}

const AT_ONCE = 4

/** Does something with each, until one rejects or it is stopped. Returns why that ended, and how many are left. */
export async function atOnce<T>(all: readonly T[], act: (each: T) => Promise<void>, isStopped: () => boolean) {
  const problems = new Set<string>()
  const rest = all.values()
  const work = async () => {
    for (const each of rest) {
      await act(each).catch((error) => problems.add(refusalIn(error).message))
      if (problems.size > 0 || isStopped()) return
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return { problems: [...problems], left: [...rest].length }
}

/** Does something with each plant, and shows how far it is, until somebody stops it or it rejects. Returns why it ended early. */
async function eachOf(plants: readonly Plant[], done: string, act: (plant: Plant) => Promise<void>) {
  let [count, isStopped] = [0, false]
  const stop = () => {
    isStopped = true
  }
  const actOn = async (plant: Plant) => {
    if (plants.length > 1) set({ progress: { text: `${done} ${count} of ${countOf(plants.length)}.`, stop } })
    await act(plant)
    count++
  }
  const { problems, left } = await atOnce(plants, actOn, () => isStopped)
  set({ progress: undefined })
  return [...problems, isStopped && 'Stopped.', left > 0 && `Not tried: ${countOf(left)}.`]
}

/** Deletes plants until one is refused, each only while it is stored as it is shown. */
export const remove = (plants: readonly Plant[]) =>
  change(plants, async (put) => {
    const [deleted, gone, changed]: Plant[][] & { length: 3 } = [[], [], []]
    const problems = await eachOf(plants, 'Deleted', async (plant) => {
      // Nobody may learn what comes of it.
      set({ undo: [plant, ...without(plant)] })
      try {
        const { stored, isDone } = await put(plant.id, plant, undefined)
        if (stored) set({ undo: without(plant) })
        if (stored) changed.push(stored)
        // A browser repeats requests by itself, so this page may have deleted what is gone.
        else (isDone ? deleted : gone).push(plant)
      } catch (error) {
        if (refusalIn(error).code > 0) set({ undo: without(plant) })
        throw error
      }
    })
    return sentences(
      deleted.length > 0 && `Deleted ${nameOf(deleted)}.`,
      gone.length > 0 && `${nameOf(gone)} ${gone.length === 1 ? 'is' : 'are'} deleted.`,
      changed.length > 0 &&
        `Not deleted, because somebody else has changed it: now it is ${changed.map(describePlant).join(', ')}.`,
      ...problems,
    )
  })

const without = ({ id }: Plant) => state.undo.filter((each) => each.id !== id)

/** The plants that Undo puts back. Those whose delete is under way wait for its answer. */
export const undoable = () => state.undo.filter(({ id }) => !state.busy.has(id))

/** Puts deleted plants back, but never over a plant that has the id now. The last one gets the focus. */
export function restore(): void {
  const plants = undoable()
  void change(plants, async (put) => {
    const restored: Plant[] = []
    const taken: string[] = []
    const problems = await eachOf(plants, 'Restored', async (plant) => {
      const { stored } = await put(plant.id, undefined, plant)
      if (stored && !isSame(stored, plant))
        return void taken.push(`${describePlant(plant)} is not restored: its id has ${describePlant(stored)} now.`)
      restored.push(plant)
      set({ undo: without(plant), focused: `[data-id='${plant.id}']` })
    })
    return sentences(restored.length > 0 && `Restored ${nameOf(restored)}.`, ...taken, ...problems)
  })
}

const sentences = (...all: readonly (string | false)[]) => all.filter(Boolean).join(' ')

/** Like: “Monstera” (evergreen), or 2 plants. */
const nameOf = (plants: readonly Plant[]): string =>
  plants.length === 1 && plants[0] ? describePlant(plants[0]) : countOf(plants.length)
