import { useRef } from 'preact/hooks'
import { countOf, type Plant } from './client.ts'

interface Props {
  readonly plants: readonly Plant[]
  readonly canWrite: boolean
  readonly remove: (plants: readonly Plant[]) => void
}

/** Plants with their ids. With a token that may write, one can be deleted, or several after a question. */
export function PlantTable({ plants, canWrite, remove }: Props) {
  const form = useRef<HTMLFormElement>(null)
  const selectAll = (isSelected: boolean) => {
    for (const box of form.current?.querySelectorAll('input') ?? []) box.checked = isSelected
  }
  const removeSelected = (event: Event) => {
    event.preventDefault()
    const ids = new FormData(form.current ?? undefined).getAll('id')
    const selected = plants.filter(({ id }) => ids.includes(id))
    if (selected.length > 0 && confirm(`Delete ${countOf(selected.length)}?`)) remove(selected)
  }
  return (
    <form ref={form} onSubmit={removeSelected}>
      <table>
        <thead>
          <tr>
            {canWrite && (
              <th scope="col">
                <input
                  type="checkbox"
                  aria-label="Select all"
                  onChange={({ currentTarget }) => selectAll(currentTarget.checked)}
                />
              </th>
            )}
            <th scope="col">Id</th>
            <th scope="col">Name</th>
            <th scope="col">Tag</th>
            {canWrite && (
              <th>
                <button type="submit">Delete selected</button>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {plants.map((plant) => (
            <tr key={plant.id}>
              {canWrite && (
                <td>
                  <input type="checkbox" name="id" value={plant.id} aria-label={`Select plant ${plant.id}`} />
                </td>
              )}
              <td>{plant.id}</td>
              <td dir="auto">{plant.name}</td>
              <td dir="auto">{plant.tag}</td>
              {canWrite && (
                <td>
                  <button type="button" aria-label={`Delete plant ${plant.id}`} onClick={() => remove([plant])}>
                    Delete
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </form>
  )
}
