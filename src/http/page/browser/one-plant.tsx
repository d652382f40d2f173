import { useEffect, useState } from 'preact/hooks'
import { refusalIn, toJson } from './client.ts'
import { FIELD_NAMES, type Plant, titleOf } from './fields.ts'
import type { Shared } from './garden.ts'
import { describeRefusal } from './messages.ts'
import { Button, Copy } from './parts.tsx'

/** One plant at its own address, with what programs need of it. `list` is the fragment of the list that was shown before. */
export function OnePlant({ client, canWrite, garden, edit, address, list }: Shared & { readonly list: string }) {
  const [plant, setPlant] = useState<Plant>()
  const [state, setState] = useState('Loading the plant…')
  const isDeleted = plant !== undefined && garden.deleted.includes(plant)
  const id = address.plant
  useEffect(() => {
    let isCurrent = true
    const read = async () => {
      const found = await client.get(id)
      if (!isCurrent) return
      // A plant that was deleted here stays, so that it can be restored.
      if (found || !isDeleted) setPlant(found?.plant)
      setState(describeRefusal(40402, ''))
    }
    read().catch((error) => isCurrent && setState(refusalIn(error).message))
    return () => {
      isCurrent = false
    }
  }, [client, id, garden.changes])
  // Back in the list, the row of the plant has the focus.
  useEffect(() => () => garden.setFocused(id), [id])
  return (
    <article class="plant">
      <p>
        <a href={list}>← All plants</a>
      </p>
      {plant === undefined && <p class="state">{state}</p>}
      {plant && (
        <>
          <h2 ref={focus} tabIndex={-1} class={isDeleted ? 'deleted' : ''}>
            <bdi>{plant.name}</bdi>
          </h2>
          <dl>
            {FIELD_NAMES.filter((field) => plant[field] !== undefined).map((field) => (
              <div key={field}>
                <dt>{titleOf(field)}</dt>
                <dd>
                  <bdi>{plant[field]}</bdi>
                </dd>
              </div>
            ))}
          </dl>
          <p class="buttons">
            {isDeleted && 'This plant is deleted.'}
            {isDeleted && <Button onClick={() => garden.restore([plant])}>Undo</Button>}
            {!isDeleted && edit && <Button onClick={() => edit(plant)}>Edit</Button>}
            {!isDeleted && canWrite && (
              <Button kind="danger" onClick={() => garden.remove([plant])}>
                Delete
              </Button>
            )}
          </p>
          <Copy title="JSON" text={toJson(plant)} />
          <Copy title="curl" text={curlOf(plant)} />
        </>
      )}
    </article>
  )
}

/** The row that led here is gone. */
const focus = (element: HTMLElement | null) => element?.focus()

/** A command that creates the plant. The token stays out of it. */
function curlOf(plant: Plant): string {
  const url = new URL('plants', location.href).href
  const body = toJson(plant).replaceAll("'", "'\\''")
  return `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '${body}' '${url}'`
}
