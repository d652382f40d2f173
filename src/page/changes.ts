// Tested in test/http/socket/page-changes.test.ts.
import { CODES } from './answer.ts'
import { Conflict, createPlant, deletePlant, isSame, keep, Refusal, refusalIn, write } from './client.ts'
import type { Plant } from './fields.ts'
import { countOf, describePlant, shown } from './messages.ts'
import { recordUpdate, set, state } from './state.ts'

/**
 * Changes plants, and tells the text that `act` returns. Returns the refusal if it rejects, or if one of the plants is being
 * changed, because a second click must not do it again.
 */
export async function change(plants: readonly Plant[], act: () => Promise<string>): Promise<Refusal | undefined> {
  const ids = new Set(plants.map(({ id }) => id))
  if (!ids.isDisjointFrom(state.busy)) return new Refusal(0, 'This plant is being changed at the moment.')
  set({ busy: state.busy.union(ids), notice: '' })
  const outcome = await act().catch(refusalIn)
  const notice = typeof outcome === 'string' ? outcome : ''
  set({ busy: state.busy.difference(ids), notice })
  if (!(outcome instanceof Refusal)) return undefined
  set({ changes: state.changes + 1 })
  return outcome
}

export const add = (plant: Plant) =>
  change([plant], async () => {
    await createPlant(plant)
    return `Added “${shown(plant.name)}”.`
  })

/** Whether the user knows that the browser keeps nothing. */
let isWarned = false

/** So many requests are under way at once. */
const AT_ONCE = 4

/** Does something with each plant, and shows how far it is, until somebody stops it or it rejects. Returns why it ended early. */
async function eachOf(plants: readonly Plant[], done: string, act: (plant: Plant) => Promise<void>) {
  const rest = [...plants]
  const problems = new Set<string>()
  let count = 0
  const show = () => {
    const stop = () => problems.add('Stopped.')
    if (plants.length > 1) set({ progress: { text: `${done} ${count} of ${countOf(plants.length)}.`, stop } })
  }
  const work = async () => {
    for (let plant = rest.shift(); plant; plant = problems.size === 0 ? rest.shift() : undefined) {
      show()
      const refusal = await act(plant).catch(refusalIn)
      if (refusal) problems.add(refusal.message)
      else count++
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  set({ progress: undefined, changes: state.changes + Math.min(problems.size, 1) })
  return [...problems, rest.length > 0 && `Not tried: ${countOf(rest.length)}.`]
}

/** Deletes plants until one is refused. Each deleted one can be created again. */
export async function remove(plants: readonly Plant[]): Promise<void> {
  const { maybeDeleted } = state
  const isKept = keep({ maybeDeleted: [...maybeDeleted, ...plants] })
  keep({ maybeDeleted })
  const warning = 'This browser keeps nothing of this page: after a reload, a delete cannot be undone. Delete?'
  if (!isKept) isWarned ||= confirm(warning)
  if (!isKept && !isWarned) return
  let undo: readonly Plant[] = []
  await change(plants, async () => {
    const outcome: Record<'deleted' | 'gone' | 'changed', Plant[]> = { deleted: [], gone: [], changed: [] }
    const problems = await eachOf(plants, 'Deleted', async (plant) => {
      const [what, now] = await deletePlant(plant)
      outcome[what].push(now)
      if (what === 'changed') recordUpdate(now.id, now)
    })
    const { deleted, gone, changed } = outcome
    undo = [...deleted, ...gone]
    return sentences(
      deleted.length > 0 && `Deleted ${nameOf(deleted)}.`,
      gone.length > 0 && `${nameOf(gone)} ${gone.length === 1 ? 'is' : 'are'} deleted.`,
      changed.length > 0 &&
        `Not deleted, because somebody else has changed it: now it is ${changed.map(describePlant).join(', ')}.`,
      ...problems,
    )
  })
  set({ undo })
}

/** Creates deleted plants again, in any order. The last one gets the focus. */
export const restore = (plants: readonly Plant[]) =>
  change(plants, async () => {
    const restored: Plant[] = []
    let taken = ''
    const problems = await eachOf(plants, 'Restored', async (plant) => {
      const refusal = await createPlant(plant).catch(refusalIn)
      if (refusal === undefined) {
        restored.push(plant)
        keep({ deleted: state.deleted.filter((each) => each !== plant) })
        return set({ focused: plant.id })
      }
      const problem = `${describePlant(plant)} is not restored. ${refusal.message}`
      if (refusal.code !== CODES.exists)
        throw refusal.code === CODES.unknown ? refusal : new Refusal(refusal.code, problem)
      taken = problem
    })
    return sentences(restored.length > 0 && `Restored ${nameOf(restored)}.`, taken, ...problems)
  })

/** Stores a changed plant if the stored one is as it is `shown`: `undefined` if there is none. Otherwise returns a `Conflict`. */
export const edit = (shown: Plant | undefined, wanted: Plant) =>
  change([wanted], async () => {
    const { stored: now } = await write(wanted.id, shown, wanted)
    recordUpdate(wanted.id, now)
    if (!isSame(now, wanted)) throw new Conflict(now)
    return `${shown ? 'Changed to' : 'Added'} ${describePlant(wanted)}.`
  })

const sentences = (...all: readonly (string | false)[]) => all.filter(Boolean).join(' ')

/** Like: “Monstera” (evergreen), or 2 plants. */
const nameOf = (plants: readonly Plant[]): string =>
  plants.length === 1 && plants[0] ? describePlant(plants[0]) : countOf(plants.length)
