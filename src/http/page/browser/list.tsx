import { useEffect, useRef, useState } from 'preact/hooks'
import { Refusal } from './client.ts'
import type { Shared } from './garden.ts'
import { type Listing, matches, type Search, sorted, useListing, useSearch } from './listing.ts'
import { countOf } from './messages.ts'
import { Button, Picture } from './parts.tsx'
import { PlantTable } from './table.tsx'

/** A page of plants, or what a search over all pages has found. */
export function PlantList(props: Shared & { readonly addFirst: () => void }) {
  const { garden, address, go } = props
  const { filter, everywhere, sort } = address
  const list = useRef<HTMLElement>(null)
  const { listing, problem, isLoading, retry } = useListing(props)
  const { search, stop } = useSearch(props, everywhere ? filter : '')
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  /** Next was pressed: its page begins at the top. */
  const isTurning = useRef(false)
  useEffect(() => {
    setSelected(new Set())
    if (isTurning.current) list.current?.scrollIntoView()
    isTurning.current = false
  }, [listing?.after, everywhere])

  const found = everywhere ? (search?.hits ?? []) : (listing?.plants ?? []).filter((plant) => matches(plant, filter))
  const plants = sorted(found, sort)
  const chosen = plants.filter((plant) => selected.has(plant.id) && !garden.deleted.includes(plant))
  const isOver = search !== undefined && search.state !== 'running'
  const hasPages = address.after !== '' || listing?.next !== undefined
  const removeChosen = () => {
    setSelected(new Set())
    const last = list.current?.querySelector<HTMLElement>(`[data-id="${chosen.at(-1)?.id}"]`)
    const next = last?.nextElementSibling ?? last
    if (next instanceof HTMLElement) next.focus()
    garden.remove(chosen)
  }
  const turn = () => {
    isTurning.current = true
    go({ after: listing?.next ?? '', page: (listing?.page ?? 1) + 1 })
  }
  return (
    <section ref={list} class={isLoading ? 'list loading' : 'list'} aria-label="Plants">
      {filter !== '' && (
        <p class="filter">
          {everywhere ? <SearchState {...{ search, filter, stop }} /> : `On this page, plants with “${filter}”:`}
          {!everywhere && hasPages && <Button onClick={() => go({ everywhere: true })}>Search all pages</Button>}
          <Button onClick={() => go({ filter: '', everywhere: false })}>Show all</Button>
        </p>
      )}
      {problem && (
        <p class="state" role="alert">
          {listing && 'This is what was here before. '}The plants could not be loaded. {problem}
          <Button onClick={retry}>Try again</Button>
        </p>
      )}
      {chosen.length > 0 && (
        <Selection chosen={chosen.length} remove={removeChosen} end={() => setSelected(new Set())} />
      )}
      {plants.length > 0 && <PlantTable {...props} {...{ plants, selected, setSelected }} />}
      {plants.length === 0 && !problem && (
        <Emptiness {...props} isLoading={isLoading || (everywhere && !isOver)} hasPages={hasPages} />
      )}
      {!everywhere && hasPages && listing && (
        <Pages {...props} {...listing} turn={!isLoading && listing.next !== undefined && turn} />
      )}
    </section>
  )
}

interface SelectionProps {
  readonly chosen: number
  readonly remove: () => void
  readonly end: () => void
}

const Selection = ({ chosen, remove, end }: SelectionProps) => (
  <p class="selection">
    {countOf(chosen)} selected.
    <Button kind="danger" onClick={remove}>
      Delete selected
    </Button>
    <Button onClick={end}>Select none</Button>
  </p>
)

type PagesProps = Shared & Listing & { readonly turn: (() => void) | false }

/** Leads to the next page, and back to the one before if it is in the history. */
const Pages = ({ after, page, turn, go }: PagesProps) => (
  <nav aria-label="Pages">
    {history.state?.hasBefore ? (
      <Button onClick={after !== '' && (() => history.back())}>Back</Button>
    ) : (
      <Button onClick={after !== '' && (() => go({ after: '', page: 1 }))}>First page</Button>
    )}
    <span aria-live="polite">Page {page}</span>
    <Button onClick={turn}>Next</Button>
  </nav>
)

type EmptinessProps = Parameters<typeof PlantList>[0] & Readonly<Record<'isLoading' | 'hasPages', boolean>>

/** Why the list has no rows: it is on its way, nothing matches, or there is nothing. */
function Emptiness({ isLoading, address: { filter }, hasPages, canWrite, addFirst }: EmptinessProps) {
  if (isLoading) return <p class="state">Loading your plants…</p>
  if (filter !== '') return <p class="state">No plant here contains “{filter}”.</p>
  if (hasPages) return <p class="state">There are no plants on this page any more.</p>
  return (
    <div class="state">
      <Picture />
      <p>You have no plants yet.</p>
      {canWrite && (
        <Button kind="primary" onClick={addFirst}>
          Add your first plant
        </Button>
      )}
    </div>
  )
}

interface SearchProps {
  readonly search: Search | undefined
  readonly filter: string
  readonly stop: () => void
}

function SearchState({ search, filter, stop }: SearchProps) {
  const { hits = [], searched = 0, state = 'running' } = search ?? {}
  const found = `${countOf(hits.length)} with “${filter}” among ${searched.toLocaleString('en')}`
  if (state instanceof Refusal)
    return (
      <span role="alert">
        The search has ended. {state.message} So far: {found}.
      </span>
    )
  const texts = {
    running: `Searching all pages: ${found} so far.`,
    whole: `On all pages: ${found}.`,
    stopped: `The search is stopped: ${found}.`,
    full: `The first ${found}. There may be more: search for a longer text.`,
  }
  return (
    <>
      <span aria-live="polite">{texts[state]}</span>
      {state === 'running' && <Button onClick={stop}>Stop</Button>}
    </>
  )
}
