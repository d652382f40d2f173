import { CODES } from './answer.ts'
import { Conflict, createPlant, deletePlant, isSame, keep, Refusal, refusalIn, replacePlant } from './client.ts'
import type { Plant } from './fields.ts'
import { countOf, describePlant } from './messages.ts'
import { set, state } from './state.ts'

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
  set({ busy: state.busy.difference(ids), changes: state.changes + 1, notice })
  return outcome instanceof Refusal ? outcome : undefined
}

export const add = (plant: Plant) =>
  change([plant], async () => {
    await createPlant(plant)
    const { all, last } = state.takenIds
    // To read them again may take its time.
    if (all) set({ takenIds: { all: new Set([...all, plant.id]), last } })
    recordUpdate(plant.id, plant)
    return `Added “${plant.name}”.`
  })

/** Whether the user knows that the browser keeps nothing. */
let isWarned = false

/** Deletes plants one by one until one is refused. Each deleted one can be created again. */
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
    let problem = ''
    for (const plant of plants) {
      const removal = await deletePlant(plant).catch(refusalIn)
      if (removal instanceof Refusal) {
        problem = removal.message
        break
      }
      const isText = typeof removal === 'string'
      outcome[isText ? removal : 'changed'].push(isText ? plant : removal)
      if (removal !== 'deleted') recordUpdate(plant.id, isText ? undefined : removal)
    }
    const { deleted, gone, changed } = outcome
    undo = deleted
    return sentences(
      deleted.length > 0 && `Deleted ${nameOf(deleted)}.`,
      gone.length > 0 && `Somebody else had deleted ${nameOf(gone)} already.`,
      changed.length > 0 &&
        `Not deleted, because somebody else has changed it: now it is ${changed.map(describePlant).join(', ')}.`,
      problem,
    )
  })
  set({ undo })
}

/** Creates deleted plants again, in any order. The last one gets the focus. */
export const restore = (plants: readonly Plant[]) =>
  change(plants, async () => {
    const restored: Plant[] = []
    let problem = ''
    for (const plant of plants) {
      const refusal = await createPlant(plant).catch(refusalIn)
      if (refusal === undefined) {
        restored.push(plant)
        keep({ deleted: state.deleted.filter((each) => each !== plant) })
        set({ focused: plant.id })
      } else if (refusal.code === CODES.unknown) problem = refusal.message
      else problem = `${describePlant(plant)} is not restored. ${refusal.message}`
      if (refusal !== undefined && refusal.code !== CODES.exists) break
    }
    return sentences(restored.length > 0 && `Restored ${nameOf(restored)}.`, problem)
  })

/** Stores a changed plant if the stored one is as it is `shown`: `undefined` if there is none. Otherwise returns a `Conflict`. */
export const edit = (shown: Plant | undefined, wanted: Plant) =>
  change([wanted], async () => {
    const now = await replacePlant(shown, wanted)
    recordUpdate(wanted.id, now)
    if (!isSame(now, wanted)) throw new Conflict(now)
    return `${shown ? 'Changed to' : 'Added'} ${describePlant(wanted)}.`
  })

const recordUpdate = (id: string, plant: Plant | undefined) =>
  set({ updatedPlants: new Map(state.updatedPlants).set(id, plant) })

const sentences = (...all: readonly (string | false)[]) => all.filter(Boolean).join(' ')

/** Like: “Monstera” (evergreen), or 2 plants. */
const nameOf = (plants: readonly Plant[]): string =>
  plants.length === 1 && plants[0] ? describePlant(plants[0]) : countOf(plants.length)
