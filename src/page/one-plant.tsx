// Tested in test/http/socket/page.test.ts.
import { useEffect } from 'preact/hooks'
import { CODES } from './answer.ts'
import { remove, restore } from './changes.ts'
import { getPlant } from './client.ts'
import { describeRefusal, shown } from './messages.ts'
import { open } from './panel.ts'
import { Button, focusElement, useTitle, Values } from './parts.tsx'
import { useRead } from './reading.ts'
import { recordUpdate, set, state } from './state.ts'

/** One plant at its own address. */
export function OnePlant() {
  const { address, deleted, canWrite } = state
  const id = address.plant
  const { problem, isLoading } = useRead(() => getPlant(id).then((found) => recordUpdate(id, found?.plant)), id)
  // Back in the list, the row of the plant has the focus.
  useEffect(() => () => set({ focused: id }), [id])
  // A plant that was deleted here stays, so that it can be restored.
  const plant = state.updates.findLast((each) => each.id === id)?.plant ?? deleted.find((each) => each.id === id)
  useTitle(plant ? shown(plant.name) : `Plant ${id}`)
  const isDeleted = plant !== undefined && deleted.includes(plant)
  return (
    <article class="plant">
      <p>
        <a href="#/">← All plants</a>
      </p>
      {plant ? (
        <>
          <h2 ref={focusElement} tabIndex={-1} class={isDeleted ? 'deleted' : ''}>
            <bdi>{shown(plant.name)}</bdi>
          </h2>
          <Values plant={plant} />
          <p class="buttons">
            {isDeleted && 'This plant is deleted.'}
            {isDeleted && <Button text="Undo" onClick={() => restore([plant])} />}
            {!isDeleted && <Button text="Copy link" onClick={copyLink} />}
            {!isDeleted && canWrite && <Button text="Edit" onClick={() => open(plant)} />}
            {!isDeleted && canWrite && <Button text="Delete" kind="danger" onClick={() => remove([plant])} />}
          </p>
        </>
      ) : (
        <p class="state">{isLoading ? 'Loading the plant…' : (problem ?? describeRefusal(CODES.notFound, ''))}</p>
      )}
    </article>
  )
}

/** Over plain HTTP browsers let no page copy. Then the link is told. */
async function copyLink(): Promise<void> {
  try {
    await navigator.clipboard.writeText(location.href)
    set({ notice: 'The link is copied.' })
  } catch {
    set({ notice: `This browser copies nothing for this page. The link is ${location.href}` })
  }
}
