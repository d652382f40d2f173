import { CODES, createPlant, deletePlant, getPlant, isSame, Refusal, refusalIn } from './client.ts'
import type { Plant } from './fields.ts'
import { countOf, describePlant } from './messages.ts'
import { set, state } from './state.ts'
import { DELETED, EDIT, type Edit } from './storage.ts'

/**
 * Changes plants, and tells the text that `act` returns. Returns the refusal if it rejects, or if one of the plants is being changed,
 * because a second click must not do it again.
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
    const { ids, ...tally } = state.tally
    // A new count may take its time.
    if (ids) set({ tally: { ...tally, ids: new Set([...ids, plant.id]) } })
    renew(plant.id, plant)
    return `Added “${plant.name}”.`
  })

/** Deletes plants one by one until one is refused. Each deleted one can be created again. */
export const remove = (plants: readonly Plant[]) =>
  change(plants, async () => {
    const outcome: Record<'deleted' | 'gone' | 'changed', Plant[]> = { deleted: [], gone: [], changed: [] }
    let problem = ''
    for (const plant of plants) {
      const removal = await deletePlant(plant).catch(refusalIn)
      if (removal instanceof Refusal) {
        // Without a code the user has given up the request.
        problem = `${removal.message}${removal.code === 0 ? ' The plant may be deleted: try again to see it.' : ''}`
        break
      }
      const isText = typeof removal === 'string'
      outcome[isText ? removal : 'changed'].push(isText ? plant : removal)
      if (removal === 'deleted') setDeleted([plant, ...state.deleted])
      else renew(plant.id, isText ? undefined : removal)
    }
    const { deleted, gone, changed } = outcome
    return sentences(
      deleted.length > 0 && `Deleted ${nameOf(deleted)}.`,
      gone.length > 0 && `Somebody else had deleted ${nameOf(gone)} already.`,
      changed.length > 0 &&
        `Not deleted, because somebody else has changed it: now it is ${changed.map(describePlant).join(', ')}.`,
      problem,
    )
  })

/** Creates deleted plants again, in any order. The last one gets the focus. */
export const restore = (plants: readonly Plant[]) =>
  change(plants, async () => {
    const restored: Plant[] = []
    let problem = ''
    for (const plant of plants) {
      const refusal = await createPlant(plant, true).catch(refusalIn)
      if (refusal === undefined) {
        restored.push(plant)
        setDeleted(state.deleted.filter((each) => each !== plant))
        set({ focused: plant.id })
      } else problem = `${describePlant(plant)} is not restored. ${refusal.message}`
      if (refusal !== undefined && refusal.code !== CODES.exists) break
    }
    return sentences(restored.length > 0 && `Restored ${nameOf(restored)}.`, problem)
  })

/**
 * Changes a plant: deletes the old one, if it is still as it is shown, and creates the new one. Both are in the storage of the tab
 * until the new one is stored. Rejects with a `Refusal` if nothing has changed, or if the edit is unfinished.
 */
export async function edit(wanted: Edit): Promise<void> {
  if (isSame(wanted.old, wanted.new)) return
  const unfinished = EDIT.read()
  if (unfinished !== undefined && unfinished.old.id !== wanted.old.id)
    throw new Refusal(0, `The change of ${describePlant(unfinished.old)} is not finished. Finish that one first.`)
  if (!EDIT.write(wanted))
    throw new Refusal(0, 'The browser has no room to keep the plant meanwhile, so nothing was changed.')
  const removal = await deletePlant(wanted.old)
  // An earlier attempt may have deleted it.
  const isDeleted = removal === 'deleted' || (removal === 'gone' && unfinished !== undefined)
  // The server may refuse the new plant.
  const refusal = isDeleted ? await createPlant(wanted.new, true).catch(refusalIn) : undefined
  if (refusal !== undefined) await createPlant(wanted.old, true)
  EDIT.clear()
  if (refusal !== undefined) throw new Refusal(refusal.code, `${refusal.message} The plant is as it was.`)
  const now = typeof removal === 'string' ? undefined : removal
  const isDone = isDeleted || (now !== undefined && isSame(now, wanted.new))
  renew(wanted.old.id, isDone ? wanted.new : now)
  if (isDone) return
  if (now === undefined) throw new Refusal(0, 'Somebody else has deleted this plant, so nothing was changed.')
  const problem = 'Somebody else has changed this plant, so nothing was changed.'
  throw new Refusal(0, `${problem} It is ${describePlant(now)} now.`)
}

/** The edit that was interrupted, if its plant is missing or still the old one. Otherwise there is nothing to finish. */
export async function findUnfinished(): Promise<Edit | undefined> {
  const found = EDIT.read()
  const stored = found && (await getPlant(found.old.id))?.plant
  if (found === undefined || stored === undefined || isSame(stored, found.old)) return found
  EDIT.clear()
  return undefined
}

/** Finishes an edit that was interrupted, or stores the old plant again. */
export async function finish(found: Edit, keepsOld: boolean): Promise<void> {
  const refusal = await change([found.old], async () => {
    if (keepsOld) await createPlant(found.old, true)
    else await edit(found)
    EDIT.clear()
    return `${describePlant(keepsOld ? found.old : found.new)} is stored.`
  })
  if (refusal) set({ notice: refusal.message })
}

function setDeleted(deleted: readonly Plant[]): void {
  DELETED.write(deleted)
  set({ deleted })
}

const renew = (id: string, plant: Plant | undefined) => set({ renewed: new Map(state.renewed).set(id, plant) })

const sentences = (...all: readonly (string | false)[]) => all.filter(Boolean).join(' ')

/** Like: “Monstera” (evergreen), or 2 plants. */
const nameOf = (plants: readonly Plant[]): string =>
  plants.length === 1 && plants[0] ? describePlant(plants[0]) : countOf(plants.length)
