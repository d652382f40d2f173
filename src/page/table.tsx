// Tested in test/http/socket/page-lists.test.ts.
import type { ComponentProps } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { formatAddress } from './address.ts'
import { remove, restore } from './changes.ts'
import { FIELD_NAMES, type Plant, titleOf } from './fields.ts'
import { countOf, shown } from './messages.ts'
import { open } from './panel.ts'
import { Button } from './parts.tsx'
import { go, set, state } from './state.ts'

/** Three lines of a row show fewer characters than this. The view of the plant shows all of them. */
const CELL_MAX = 600

const rowOf = (id: string) => document.querySelector<HTMLElement>(`[data-id="${id}"]`)
const isDeleted = (plant: Plant) => state.deleted.includes(plant)

/** Deletes plants of the table. The focus goes to the row behind the last one. */
function removeRows(plants: readonly Plant[]): void {
  const row = rowOf(plants.at(-1)?.id ?? '')
  const next = row?.nextElementSibling ?? row?.previousElementSibling ?? row
  if (next instanceof HTMLElement) next.focus()
  void remove(plants)
}

/**
 * Plants in rows, which are one stop of Tab. Keys go from row to row and within a row. A deleted plant stays in its row. Only
 * the whole of all plants can be sorted.
 */
export function PlantTable({ plants, isWhole }: { readonly plants: readonly Plant[]; readonly isWhole: boolean }) {
  const { focused, busy, canWrite } = state
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => {
    const row = rowOf(focused)
    if (!row || busy.size > 0) return
    // Nobody who is typing is interrupted.
    if (!document.activeElement?.matches('input:not([type=checkbox])')) row.focus()
    set({ focused: '' })
  }, [focused, busy, plants])

  const left = plants.filter((plant) => !isDeleted(plant))
  const chosen = left.filter(({ id }) => selected.has(id))
  const select = (chosen: readonly Plant[]) => setSelected(new Set(chosen.map(({ id }) => id)))
  const isAll = left.length > 0 && chosen.length === left.length
  const removeChosen = () => {
    select([])
    removeRows(chosen)
  }
  return (
    <>
      {chosen.length > 0 && (
        <p class="selection">
          {`${countOf(chosen.length)} selected.`}
          <Button text="Delete selected" kind="danger" onClick={removeChosen} />
          <Button text="Select none" onClick={() => select([])} />
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: its rows take the focus, as those of a grid do */}
      <table role="grid" aria-label="Plants">
        <thead>
          <tr>
            {canWrite && <Box aria-label="Select all" checked={isAll} onChange={() => select(isAll ? [] : left)} />}
            {FIELD_NAMES.map((name) => (
              <Header key={name} name={name} isSorted={isWhole} />
            ))}
            {canWrite && <td />}
          </tr>
        </thead>
        <tbody
          onClick={openRow}
          onKeyDown={(event) => press(event, plants)}
          onFocusIn={({ target }) => stopAt(target instanceof Element ? target.closest('tr') : null)}
          ref={(body) => stopAt(body?.querySelector('[tabindex="0"]') ?? body?.firstElementChild)}
        >
          {plants.map((plant) => (
            <PlantRow
              {...{ key: plant.id, plant, isChosen: chosen.includes(plant) }}
              toggle={() => setSelected(selected.symmetricDifference(new Set([plant.id])))}
            />
          ))}
        </tbody>
      </table>
    </>
  )
}

/** Lets Tab stop at this row alone. Arrows reach the others, and what is in them. */
function stopAt(row: Element | null | undefined): void {
  for (const each of row?.parentElement?.querySelectorAll<HTMLElement>('tr, a, button, input') ?? [])
    each.tabIndex = each === row ? 0 : -1
}

/** Opens the plant of a row that is clicked, unless that is meant for something in the row, or marks text. */
function openRow({ target }: Event): void {
  if (!(target instanceof Element) || target.closest('a, button, label') || !getSelection()?.isCollapsed) return
  target.closest('tr')?.querySelector('a')?.click()
}

/** Does what a key stands for on the row of one of these plants. */
function press(event: KeyboardEvent, plants: readonly Plant[]): void {
  const { key, target, repeat, ctrlKey, shiftKey, altKey, metaKey } = event
  if (!(target instanceof HTMLElement) || ctrlKey || shiftKey || altKey || metaKey) return
  const row = target.closest('tr')
  const inRow = row?.querySelectorAll<HTMLElement>('a, button, :enabled') ?? []
  const stops = [row, ...inRow].filter((each) => each?.checkVisibility())
  const at = stops.indexOf(target)
  const plant = plants.find(({ id }) => id === row?.dataset.id)
  const next = {
    ...{ ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling },
    ...{ ArrowRight: stops[at + 1], ArrowLeft: stops[at - 1] },
  }[key]
  if (next instanceof HTMLElement) next.focus()
  else if (key === 'Enter' && target === row) row?.querySelector('a')?.click()
  else if (key === ' ' && target === row) row?.querySelector('input')?.click()
  // A key that is held would delete row after row.
  else if (key === 'Delete' && plant && state.canWrite && !repeat && !isDeleted(plant)) removeRows([plant])
  else return
  event.preventDefault()
}

const Box = (props: Pick<ComponentProps<'input'>, 'aria-label' | 'checked' | 'disabled' | 'onChange'>) => (
  <td>
    <label>
      <input type="checkbox" {...props} />
    </label>
  </td>
)

/** A click sorts by the field, another one turns the order round, and a third one ends it. */
function Header({ name, isSorted }: { readonly name: string; readonly isSorted: boolean }) {
  const { sort } = state.address
  if (!isSorted) return <th scope="col">{titleOf(name)}</th>
  const order = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined
  const next = order === 'ascending' ? `-${name}` : order ? '' : name
  return (
    <th scope="col" aria-sort={order}>
      <Button text={titleOf(name)} kind="quiet" onClick={() => go({ sort: next })} />
    </th>
  )
}

interface RowProps {
  readonly plant: Plant
  readonly isChosen: boolean
  readonly toggle: () => void
}

function PlantRow({ plant, isChosen, toggle }: RowProps) {
  const { id, name } = plant
  const { canWrite, busy, address } = state
  const isGone = isDeleted(plant)
  return (
    <tr data-id={id} class={busy.has(id) ? 'busy' : isGone ? 'deleted' : ''}>
      {canWrite && <Box aria-label={`Select plant ${id}`} disabled={isGone} checked={isChosen} onChange={toggle} />}
      <td class="id">{id}</td>
      <td class="name">
        <a href={formatAddress({ ...address, plant: id })}>
          <bdi>{shown(name, CELL_MAX)}</bdi>
        </a>
      </td>
      {FIELD_NAMES.slice(2).map((field) => (
        <td key={field}>{plant[field] && <Chip text={plant[field]} />}</td>
      ))}
      {canWrite && (
        <td class="buttons">
          {isGone && <Button text="Undo" label={`Undo the delete of plant ${id}`} onClick={() => restore([plant])} />}
          {!isGone && <Button text="Edit" kind="quiet" label={`Edit plant ${id}`} onClick={() => open(plant)} />}
          {!isGone && (
            <Button text="Delete" kind="danger" label={`Delete plant ${id}`} onClick={() => removeRows([plant])} />
          )}
        </td>
      )}
    </tr>
  )
}

/** A tag, which filters the list. */
const Chip = ({ text }: { readonly text: string }) => (
  <button type="button" class="chip" title={`Show plants with “${shown(text)}”`} onClick={() => go({ filter: text })}>
    <bdi>{shown(text, CELL_MAX)}</bdi>
  </button>
)
