import { useEffect, useRef } from 'preact/hooks'
import { formatAddress, parseAddress } from './address.ts'
import { FIELD_NAMES, type Plant, titleOf } from './fields.ts'
import type { Shared } from './garden.ts'
import { Button } from './parts.tsx'

interface Props extends Shared {
  readonly plants: readonly Plant[]
  readonly selected: ReadonlySet<string>
  readonly setSelected: (ids: ReadonlySet<string>) => void
}

/** Plants in rows. Arrows go from row to row, and Delete deletes the plant of the row. A deleted plant stays in its row. */
export function PlantTable(props: Props) {
  const { plants, garden, canWrite, selected, setSelected } = props
  const body = useRef<HTMLTableSectionElement>(null)
  useEffect(() => {
    const row = body.current?.querySelector<HTMLElement>(`[data-id="${garden.focused}"]`)
    if (!row || garden.busy.size > 0) return
    // Nobody who is typing is interrupted.
    if (!document.activeElement?.matches('input:not([type=checkbox])')) row.focus()
    garden.setFocused('')
  }, [garden.focused, garden.busy, plants])

  const remove = (plant: Plant) => {
    const row = body.current?.querySelector(`[data-id="${plant.id}"]`)
    const next = row?.nextElementSibling ?? row?.previousElementSibling
    const focused = next ?? row
    if (focused instanceof HTMLElement) focused.focus()
    garden.remove([plant])
  }
  const press = (event: KeyboardEvent) => {
    const { key, target, repeat, ctrlKey, shiftKey, altKey } = event
    const row = target instanceof Element ? target.closest('tr') : undefined
    const plant = plants.find(({ id }) => id === row?.dataset.id)
    // A key that is held would delete row after row.
    const isHeld = repeat || ctrlKey || shiftKey || altKey
    const step = { ArrowDown: 1, ArrowUp: -1 }[key]
    const rows = [...(body.current?.rows ?? [])]
    if (step && row) rows[rows.indexOf(row) + step]?.focus()
    else if (key === 'Enter' && target === row && plant) location.hash = `/plants/${plant.id}`
    else if (key === 'Delete' && plant && canWrite && !isHeld && !garden.deleted.includes(plant)) remove(plant)
    else return
    event.preventDefault()
  }
  const left = plants.filter((plant) => !garden.deleted.includes(plant))
  const isAll = left.length > 0 && left.every(({ id }) => selected.has(id))
  const selectAll = () => setSelected(new Set(isAll ? [] : left.map(({ id }) => id)))
  return (
    <table>
      <thead>
        <tr>
          {canWrite && (
            <td>
              <label>
                <input type="checkbox" aria-label="Select all" checked={isAll} onChange={selectAll} />
              </label>
            </td>
          )}
          {FIELD_NAMES.map((name) => (
            <SortedHeader key={name} name={name} {...props} />
          ))}
          {canWrite && <td />}
        </tr>
      </thead>
      <tbody ref={body} onKeyDown={press}>
        {plants.map((plant, index) => (
          <PlantRow key={plant.id} {...props} {...{ plant, remove }} tabIndex={index === 0 ? 0 : -1} />
        ))}
      </tbody>
    </table>
  )
}

/** A click sorts by the field, another one turns the order round, and a third one ends it. */
function SortedHeader({ name, address: { sort }, go }: Shared & { readonly name: string }) {
  const order = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined
  const next = order === 'ascending' ? `-${name}` : order ? '' : name
  return (
    <th scope="col" aria-sort={order}>
      <Button kind="quiet" onClick={() => go({ sort: next })}>
        {titleOf(name)}
      </Button>
    </th>
  )
}

interface RowProps extends Props {
  readonly plant: Plant
  readonly tabIndex: number
  readonly remove: (plant: Plant) => void
}

function PlantRow({ plant, tabIndex, remove, garden, canWrite, selected, setSelected, go, edit }: RowProps) {
  const { id, name } = plant
  const isDeleted = garden.deleted.includes(plant)
  const others = new Set(selected)
  const wasSelected = others.delete(id)
  const state = isDeleted ? 'deleted' : ''
  return (
    <tr data-id={id} tabIndex={tabIndex} class={garden.busy.has(id) ? 'busy' : state}>
      {canWrite && (
        <td>
          <label>
            <input
              type="checkbox"
              aria-label={`Select plant ${id}`}
              disabled={isDeleted}
              checked={wasSelected && !isDeleted}
              onChange={() => setSelected(wasSelected ? others : others.add(id))}
            />
          </label>
        </td>
      )}
      <td class="id">{id}</td>
      <td class="name">
        <a href={formatAddress({ ...parseAddress(''), plant: id })}>
          <bdi>{name.trim() === '' ? `“${name}”` : name}</bdi>
        </a>
      </td>
      {FIELD_NAMES.slice(2).map((field) => (
        <td key={field}>{plant[field] && <Chip text={plant[field]} onClick={(filter) => go({ filter })} />}</td>
      ))}
      {canWrite && (
        <td class="buttons">
          {isDeleted && (
            <Button label={`Undo the delete of plant ${id}`} onClick={() => garden.restore([plant])}>
              Undo
            </Button>
          )}
          {!isDeleted && edit && (
            <Button kind="quiet" label={`Edit plant ${id}`} onClick={() => edit(plant)}>
              Edit
            </Button>
          )}
          {!isDeleted && (
            <Button kind="danger" label={`Delete plant ${id}`} onClick={() => remove(plant)}>
              Delete
            </Button>
          )}
        </td>
      )}
    </tr>
  )
}

interface ChipProps {
  readonly text: string
  readonly onClick: (text: string) => void
}

/** A tag, which filters the list. */
const Chip = ({ text, onClick }: ChipProps) => (
  <button type="button" class="chip" title={`Show plants with “${text}”`} onClick={() => onClick(text)}>
    <bdi>{text}</bdi>
  </button>
)
