import { useEffect, useState } from 'preact/hooks'
import { formatAddress } from './address.ts'
import { remove, restore } from './changes.ts'
import { CODES, getPlant, toJson } from './client.ts'
import type { Plant } from './fields.ts'
import { describeRefusal } from './messages.ts'
import { open } from './panel.ts'
import { Button, focusElement, Values } from './parts.tsx'
import { useRead } from './reading.ts'
import { set, state } from './state.ts'

/** One plant at its own address, with what programs need of it. */
export function OnePlant() {
  const { address, deleted, canWrite } = state
  const id = address.plant
  const { value: found, problem, isLoading } = useRead(() => getPlant(id), id)
  // Back in the list, the row of the plant has the focus.
  useEffect(() => () => set({ focused: id }), [id])
  // A plant that was deleted here stays, so that it can be restored.
  const plant = found?.plant ?? deleted.find((each) => each.id === id)
  const isDeleted = plant !== undefined && deleted.includes(plant)
  return (
    <article class="plant">
      <p>
        <a href={formatAddress({ ...address, plant: '' })}>← All plants</a>
      </p>
      {plant ? (
        <>
          <h2 ref={focusElement} tabIndex={-1} class={isDeleted ? 'deleted' : ''}>
            <bdi>{plant.name}</bdi>
          </h2>
          <Values plant={plant} />
          <p class="buttons">
            {isDeleted && 'This plant is deleted.'}
            {isDeleted && <Button text="Undo" onClick={() => restore([plant])} />}
            {!isDeleted && canWrite && <Button text="Edit" onClick={() => open(plant)} />}
            {!isDeleted && canWrite && <Button text="Delete" kind="danger" onClick={() => remove([plant])} />}
          </p>
          <Copy title="JSON" text={toJson(plant)} />
          <Copy title="curl" text={curlOf(plant)} />
        </>
      ) : (
        <p class="state">{isLoading ? 'Loading the plant…' : (problem ?? describeRefusal(CODES.notFound, ''))}</p>
      )}
    </article>
  )
}

/** A command that creates the plant. The token stays out of it. */
function curlOf(plant: Plant): string {
  const url = new URL('plants', location.href).href
  const body = toJson(plant).replaceAll("'", "'\\''")
  return `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '${body}' '${url}'`
}

/** A text to copy. Without the clipboard, which browsers give only to https and to this machine, people select it. */
function Copy({ title, text }: Readonly<Record<'title' | 'text', string>>) {
  const [isCopied, setIsCopied] = useState(false)
  const copy = () => void navigator.clipboard.writeText(text).then(() => setIsCopied(true))
  return (
    <figure>
      <figcaption>
        {title}
        {navigator.clipboard && <Button text={isCopied ? 'Copied' : `Copy ${title}`} onClick={copy} />}
      </figcaption>
      <pre>
        <code>{text}</code>
      </pre>
    </figure>
  )
}
