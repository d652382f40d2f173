import type { Plant } from './client.ts'
import { FIELD_NAMES, titleOf } from './fields.ts'
import { Quiet } from './parts.tsx'

interface Props {
  readonly plants: readonly Plant[]
  readonly remove: (plants: readonly Plant[]) => void
}

/** Plants with their ids. One can be deleted, or several after a question. */
export function PlantTable({ plants, remove }: Props) {
  const removeSelected = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const ids = new FormData(event.currentTarget).getAll('id')
    const selected = plants.filter(({ id }) => ids.includes(id))
    if (selected.length > 0 && confirm(`Delete ${countOf(selected.length)}?`)) remove(selected)
  }
  return (
    <form onSubmit={removeSelected}>
      <table>
        <thead>
          <tr>
            {FIELD_NAMES.map((name) => (
              <th key={name} scope="col">
                {titleOf(name)}
              </th>
            ))}
            <td class="write">
              <button type="submit">Delete selected</button>
            </td>
          </tr>
        </thead>
        <tbody>
          {plants.map((plant) => (
            <tr key={plant.id}>
              <td>
                <label>
                  <input class="write" type="checkbox" name="id" value={plant.id} />
                  {plant.id}
                </label>
              </td>
              {FIELD_NAMES.slice(1).map((name) => (
                <td key={name} dir="auto">
                  {plant[name]}
                </td>
              ))}
              <td class="write">
                <Quiet label={`Delete plant ${plant.id}`} onClick={() => remove([plant])}>
                  Delete
                </Quiet>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {plants.length === 0 && <p>There are no plants to show.</p>}
    </form>
  )
}

/** Like: 2 plants. */
export const countOf = (count: number): string => `${count.toLocaleString('en')} ${count === 1 ? 'plant' : 'plants'}`
