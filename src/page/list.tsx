// Tested in test/http/page/page-lists.test.ts.
import { useEffect } from 'preact/hooks'
import { type Address, formatAddress } from './address.ts'
import { because, countOf, shown } from './messages.ts'
import { open } from './panel.ts'
import { Button, Picture, refresh, useRead, useTitle } from './parts.tsx'
import { listPlants } from './plants.ts'
import { type Listing, matches } from './rows.ts'
import { SearchState, useSearch } from './search.tsx'
import { go, set, state } from './state.ts'
import { PlantTable } from './table.tsx'

const PAGE_PLANTS = 50

/** A page of plants, or what a search over all pages has found. */
export function PlantList() {
  const { address, list, changes, starts, upload } = state
  const { filter, after, page } = address
  const hasPages = after !== '' || (list !== undefined && list.end !== '')
  const search = useSearch(list && hasPages ? filter : '')
  // The rows of a search are not read again. The page behind them is, once it shows.
  const isDue = search.isFound && list?.after === after ? list.changes : changes
  const { problem, isLoading } = useRead(() => readPage(address), after, isDue)
  const listed = list?.plants.filter((plant) => matches(plant, filter)) ?? []
  const plants = search.isFound ? search.plants : listed
  const before = list?.page === 2 ? '' : starts.get((list?.page ?? 1) - 1)
  const isFresh = list?.after === after && list.changes === isDue
  const isEmptied = isFresh && list.plants.length === 0 && before !== undefined && after !== ''
  useEffect(() => {
    if (!isEmptied) return
    go({ after: before, page: page - 1 }, state.notice)
    set({ focused: 'tr[data-id]:last-child' })
  }, [isEmptied])
  useTitle(filter === '' ? `Plants, page ${list?.page ?? page}` : `“${shown(filter)}”`)
  return (
    <section class={list && list.after !== after ? 'list loading' : 'list'} aria-label="Plants" tabIndex={-1}>
      {filter !== '' && (
        <p class="filter">
          <SearchState {...search} />
          <Button text="Show all" onClick={() => go({ filter: '' })} />
        </p>
      )}
      {problem && (
        <p class="state" role="alert">
          {because(`${list ? 'This is the list from before. ' : ''}The plants could not be loaded`, problem)}
          <Button text="Try again" onClick={refresh} />
        </p>
      )}
      {plants.length > 0 && <PlantTable key={list?.after} plants={plants} />}
      {plants.length === 0 && !problem && (
        <Emptiness isLoading={isLoading || !isFresh || search.job !== undefined} hasPages={hasPages} />
      )}
      {!search.isFound && list && hasPages && <Pages {...list} before={before} />}
      {list && !hasPages && !problem && upload !== 'running' && list.plants.length > 0 && (
        <p>{`${countOf(list.plants.length)} in all.`}</p>
      )}
    </section>
  )
}

/** The ways to other pages. The one before begins behind an id that is known only if this tab has shown it. */
function Pages({ plants, after, end, page, before }: Listing & { readonly before: string | undefined }) {
  const to = (after: string, page: number) => ({
    href: formatAddress({ ...state.address, after, page }),
    // Another page begins at the top.
    onClick: () => document.querySelector('.list')?.scrollIntoView(),
  })
  const of = state.total === undefined ? '' : ` of ${state.total.toLocaleString('en')}`
  return (
    <nav aria-label="Pages">
      {after !== '' && before !== '' && <a {...to('', 1)}>First page</a>}
      {after !== '' && before !== undefined && <a {...{ rel: 'prev', ...to(before, page - 1) }}>Previous</a>}
      <span aria-live="polite">{`Page ${page}`}</span>
      {plants.length > 0 && (
        <span>{`${countOf(plants.length)}, ids ${plants[0]?.id} to ${plants.at(-1)?.id}${of}`}</span>
      )}
      <span class="paper">This is one page of a longer list.</span>
      {end !== '' && <a {...{ rel: 'next', ...to(end, page + 1) }}>Next</a>}
    </nav>
  )
}

async function readPage({ after, page }: Address) {
  const { changes } = state
  const list = { ...(await listPlants(PAGE_PLANTS, after)), page, changes }
  return { list, starts: new Map(state.starts).set(page, after) }
}

/** Why the list has no rows: it is on its way, nothing matches, or there is nothing. */
function Emptiness({ isLoading, hasPages }: Readonly<Record<'isLoading' | 'hasPages', boolean>>) {
  const { filter } = state.address
  const isFirst = !isLoading && filter === '' && !hasPages && state.upload !== 'running'
  const texts = [
    [isLoading, filter === '' ? 'Loading your plants…' : 'Searching…'],
    [filter !== '', `No plant here contains “${shown(filter)}”.`],
    [hasPages, 'There are no plants on this page any more.'],
    [true, isFirst ? 'You have no plants yet.' : 'The upload brings the first plants.'],
  ] as const
  return (
    <div class="state">
      {isFirst && <Picture />}
      <p>{texts.find(([isSo]) => isSo)?.[1]}</p>
      {isFirst && state.canWrite && <Button text="Add your first plant" kind="primary" onClick={() => open('new')} />}
    </div>
  )
}
