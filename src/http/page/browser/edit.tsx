import { useEffect, useState } from 'preact/hooks'
import { type Client, isSame, refusalIn } from './client.ts'
import type { Plant } from './fields.ts'
import type { Shared } from './garden.ts'
import { describePlant } from './messages.ts'
import { Button } from './parts.tsx'
import { EDIT, type Edit } from './storage.ts'

/** Whether the tab can keep both plants during an edit. An unfinished edit must not be overwritten. */
export function canEdit(): boolean {
  if (EDIT.read() !== undefined) return true
  const nothing = { id: '', name: '' }
  const isKept = EDIT.write({ old: nothing, new: nothing })
  EDIT.clear()
  return isKept
}

/**
 * Changes a plant: deletes the old one, if it is still as it is shown, and creates the new one. Both are in the storage of the tab
 * until the new one is stored. Returns the problem if nothing has changed. Rejects with a `Refusal` if the edit is unfinished.
 */
export async function changePlant(client: Client, edit: Edit): Promise<string | undefined> {
  if (isSame(edit.old, edit.new)) return undefined
  const unfinished = EDIT.read()
  if (unfinished !== undefined && unfinished.old.id !== edit.old.id) {
    return `The change of ${describePlant(unfinished.old)} is not finished. Finish that one first.`
  }
  if (!EDIT.write(edit)) return 'The browser has no room to keep the plant meanwhile, so nothing was changed.'
  const found = await client.remove(edit.old)
  // An earlier attempt has deleted it.
  const removal = found === 'gone' && unfinished !== undefined ? 'deleted' : found
  // The server may refuse the new plant.
  const refusal = removal === 'deleted' ? await client.create(edit.new).catch(refusalIn) : undefined
  if (refusal !== undefined) await client.create(edit.old)
  EDIT.clear()
  if (refusal !== undefined) return `${refusal.message} The plant is as it was.`
  if (removal === 'gone') return 'Somebody else has deleted this plant, so nothing was changed.'
  if (removal === 'deleted') return undefined
  return `Somebody else has changed this plant, so nothing was changed. It is ${describePlant(removal)} now.`
}

/** Finds an edit that was interrupted, looks how far it came, and offers to finish it. */
export function UnfinishedEdit({ client, garden }: Shared) {
  const [edit, setEdit] = useState<Edit>()
  /** The stored plant, if it is neither missing nor the old one. Then there is nothing to finish. */
  const look = async ({ old }: Edit) => {
    const stored = (await client.get(old.id))?.plant
    return { stored, isMissing: stored === undefined, isOld: stored !== undefined && isSame(stored, old) }
  }
  useEffect(() => {
    let isCurrent = true
    const found = EDIT.read()
    setEdit(undefined)
    if (found === undefined) return
    const show = ({ isMissing, isOld }: Awaited<ReturnType<typeof look>>) => {
      if (!isCurrent || EDIT.read()?.old.id !== found.old.id) return
      if (isMissing || isOld) setEdit(found)
      else EDIT.clear()
    }
    look(found).then(show, refusalIn)
    return () => {
      isCurrent = false
    }
  }, [client, garden.changes])
  if (edit === undefined) return null

  /** Looks again first: another tab or device may have been faster. */
  const end = (wanted: Plant) => async () => {
    const { stored, isMissing, isOld } = await look(edit)
    if (isMissing) await client.create(wanted)
    const problem = isOld && wanted === edit.new ? await changePlant(client, edit) : undefined
    if (problem !== undefined) return garden.tell(problem)
    EDIT.clear()
    setEdit(undefined)
    garden.tell(`${describePlant(stored && !isOld ? stored : wanted)} is stored.`)
    garden.readAgain()
  }
  return (
    <p class="unfinished" role="alert">
      You were changing {describePlant(edit.old)} to {describePlant(edit.new)}, and that is not finished: the plant may
      be missing.
      <Button kind="primary" onClick={() => garden.change([edit.old], end(edit.new))}>
        Finish
      </Button>
      <Button onClick={() => garden.change([edit.old], end(edit.old))}>Keep the old plant</Button>
    </p>
  )
}
