// Tested in test/http/socket/page.test.ts.
import { useEffect } from 'preact/hooks'
import { CODES } from './answer.ts'
import { remove } from './changes.ts'
import { describeRefusal, shown } from './messages.ts'
import { open } from './panel.ts'
import { Button, focusElement, Terms, useRead, useTitle } from './parts.tsx'
import { getPlant } from './plants.ts'
import { FIELD_NAMES, titleOf } from './rows.ts'
import { set, state } from './state.ts'

/** One plant at its own address. */
export function OnePlant() {
  const { address, one, canWrite, changes } = state
  const id = address.plant
  const { problem, isLoading } = useRead(
    () => getPlant(id).then((found) => ({ one: { id, plant: found?.plant } })),
    id,
    changes,
  )
  // Back in the list, the row of the plant has the focus.
  useEffect(() => () => set({ focused: `[data-id='${id}']` }), [id])
  const plant = one?.id === id ? one.plant : undefined
  useTitle(plant ? shown(plant.name) : `Plant ${id}`)
  return (
    <article class="plant">
      <p>
        <a href="#/">← All plants</a>
      </p>
      {plant ? (
        <>
          <h2 ref={focusElement} tabIndex={-1}>
            <bdi>{shown(plant.name)}</bdi>
          </h2>
          <Terms of={FIELD_NAMES.filter((field) => field in plant).map((field) => [titleOf(field), plant[field]])} />
          <p class="buttons">
            {canWrite && <Button text="Edit" onClick={() => open(plant)} />}
            {canWrite && <Button text="Delete" kind="danger" onClick={() => remove([plant])} />}
          </p>
        </>
      ) : (
        <p class="state">{isLoading ? 'Loading the plant…' : problem || describeRefusal(CODES.notFound, '')}</p>
      )}
    </article>
  )
}
