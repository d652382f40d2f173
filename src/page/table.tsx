// Tested in test/http/page/page-lists.test.ts.
import type { ComponentProps } from 'preact'
import { useEffect } from 'preact/hooks'
import { formatAddress } from './address.ts'
import { remove } from './changes.ts'
import { countOf, shown } from './messages.ts'
import { open } from './panel.ts'
import { Button } from './parts.tsx'
import { FIELD_NAMES, type Plant, titleOf } from './rows.ts'
import { go, set, state } from './state.ts'

/** Three lines of a row show fewer characters than this. The view of the plant shows all of them. */
const CELL_MAX = 600

const LEAP_ROWS = 10

/** Deletes plants of the table. The focus goes to the next row that stays, or to the one before. */
function removeRows(plants: readonly Plant[]): void {
  const rows = [...document.querySelectorAll<HTMLElement>('tr[data-id]')]
  const last = rows.findLastIndex(({ dataset }) => plants.some(({ id }) => id === dataset.id))
  void remove(plants)
  const stays = ({ dataset: { id = '' } }: HTMLElement) => !state.busy.has(id)
  const next = rows.slice(last).find(stays) ?? rows.slice(0, last).findLast(stays)
  if (next) next.focus()
  else set({ focused: 'tr[data-id]' })
}

const selectAll = (plants: readonly Plant[]) => set({ selected: new Set(plants.map(({ id }) => id)) })

/** How many plants are selected, and what can be done with them. It floats, so that no row moves under the pointer. */
export function Selection() {
  const { list, search, selected } = state
  const rows = new Map([...(list?.plants ?? []), ...(search?.plants ?? [])].map((plant) => [plant.id, plant]))
  const chosen = [...selected].flatMap((id) => rows.get(id) ?? [])
  const removeChosen = () => {
    selectAll([])
    removeRows(chosen)
  }
  return (
    <div aria-live="polite">
      {chosen.length > 0 && (
        <p class="selection">
          <span>{`${countOf(chosen.length)} selected.`}</span>
          <Button text="Delete selected" kind="danger" onClick={removeChosen} />
          <Button text="Select none" onClick={() => selectAll([])} />
        </p>
      )}
    </div>
  )
}

/** Plants in rows, which are one stop of Tab. Keys go from row to row and within a row. */
export function PlantTable({ plants }: { readonly plants: readonly Plant[] }) {
  const { focused, busy, canWrite, selected } = state
  useEffect(() => {
    const row = focused && busy.size === 0 && document.querySelector<HTMLElement>(focused)
    if (!row) return
    // Nobody who is typing is interrupted.
    if (!document.activeElement?.matches('input:not([type=checkbox])')) row.focus()
    set({ focused: '' })
  }, [focused, busy, plants])

  const isAll = plants.every(({ id }) => selected.has(id))
  return (
    // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: its rows take the focus, as those of a grid do
    <table role="grid" aria-label="Plants" aria-multiselectable={canWrite}>
      <thead>
        <tr>
          {canWrite && <Box aria-label="Select all" checked={isAll} onChange={() => selectAll(isAll ? [] : plants)} />}
          {FIELD_NAMES.map((name) => (
            <th key={name} scope="col">
              {titleOf(name)}
            </th>
          ))}
          {canWrite && <td />}
        </tr>
      </thead>
      <tbody
        onClickCapture={click}
        onKeyDown={(event) => press(event, plants)}
        onFocusIn={({ target }) => stopAt(target instanceof Element ? target.closest('tr') : null)}
        ref={(body) => stopAt(body?.querySelector('[tabindex="0"]') ?? body?.firstElementChild)}
      >
        {plants.map((plant) => (
          <PlantRow key={plant.id} plant={plant} />
        ))}
      </tbody>
    </table>
  )
}

/** Lets Tab stop at this row alone. Arrows reach the others, and what is in them. */
function stopAt(row: Element | null | undefined): void {
  for (const each of row?.parentElement?.querySelectorAll<HTMLElement>('tr, a, button, input') ?? [])
    each.tabIndex = each === row ? 0 : -1
}

/**
 * Opens the plant of a row that is clicked, unless that is meant for something in the row, or marks text. A second click at once
 * does nothing, because it is for what was there at the first one.
 */
function click(event: MouseEvent): void {
  const { target, detail } = event
  if (detail > 1) {
    event.preventDefault()
    event.stopPropagation()
  } else if (target instanceof Element && !target.closest('a, button, label') && getSelection()?.isCollapsed)
    target.closest('tr')?.querySelector('a')?.click()
}

const isVisible = (element: Element) => element.getClientRects().length > 0

/** Does what a key stands for on the row of one of these plants. */
function press(event: KeyboardEvent, plants: readonly Plant[]): void {
  const { key, target, repeat, ctrlKey, shiftKey, altKey, metaKey } = event
  if (!(target instanceof HTMLElement) || ctrlKey || shiftKey || altKey || metaKey) return
  const row = target.closest('tr')
  if (!row) return
  const stops = [row, ...row.querySelectorAll<HTMLElement>('a, button, :enabled')].filter(isVisible)
  const at = stops.indexOf(target)
  const plant = plants.find(({ id }) => id === row.dataset.id)
  const rows = [...(row.parentElement?.children ?? [])]
  const index = rows.indexOf(row)
  const next = {
    ...{ ArrowDown: rows[index + 1], ArrowUp: rows[index - 1], Home: rows[0], End: rows.at(-1) },
    ...{ PageDown: rows[index + LEAP_ROWS] ?? rows.at(-1), PageUp: rows[Math.max(index - LEAP_ROWS, 0)] },
    ...{ ArrowRight: stops[at + 1], ArrowLeft: stops[at - 1] },
  }[key]
  if (next instanceof HTMLElement) next.focus()
  else if (key === 'Enter' && target === row) row.querySelector('a')?.click()
  else if (key === ' ' && target === row) row.querySelector('input')?.click()
  // A key that is held would delete row after row.
  else if (key === 'Delete' && plant && state.canWrite && !repeat) removeRows([plant])
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

function PlantRow({ plant }: { readonly plant: Plant }) {
  const { id, name } = plant
  const { canWrite, busy, address, selected } = state
  const others = [...selected].filter((each) => each !== id)
  const toggle = () => set({ selected: new Set(selected.has(id) ? others : [...others, id]) })
  return (
    <tr
      {...{
        'data-id': id,
        class: busy.has(id) ? 'busy' : '',
        'aria-selected': canWrite ? selected.has(id) : undefined,
      }}
      aria-label={FIELD_NAMES.flatMap((field) => (plant[field] ? shown(plant[field]) : [])).join(', ')}
    >
      {canWrite && <Box aria-label={`Select plant ${id}`} checked={selected.has(id)} onChange={toggle} />}
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
          <Button text="Edit" kind="quiet" aria-label={`Edit plant ${id}`} onClick={() => open(plant)} />
          <Button text="Delete" kind="danger" aria-label={`Delete plant ${id}`} onClick={() => removeRows([plant])} />
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
