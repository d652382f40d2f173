import { useEffect, useState } from 'preact/hooks'

/** What the page shows. It is in the fragment of the URL, which no server, proxy or log gets. */
export interface Address {
  /** The id of the only plant that is shown, or empty. */
  readonly plant: string
  /** The list begins behind this id. Empty for the first page. */
  readonly after: string
  /** The number of the page, for people. */
  readonly page: number
  /** The text that a plant must contain. */
  readonly filter: string
  /** Whether all pages are searched for that text. */
  readonly everywhere: boolean
  /** The field by which the shown plants are sorted. A minus before it turns the order round. Empty for the order of the server. */
  readonly sort: string
}

const START: Address = { plant: '', after: '', page: 1, filter: '', everywhere: false, sort: '' }
const INTEGER = /^-?\d+$/

/** Reads a fragment like `#/plants/42` or `#/?after=99&page=3&filter=fern`. What it cannot read is as at the start. */
export function parseAddress(fragment: string): Address {
  const [path = '', query = ''] = fragment.split('?')
  const values = new URLSearchParams(query)
  const text = (name: string) => values.get(name) ?? ''
  const after = INTEGER.test(text('after')) ? text('after') : ''
  return {
    plant: /^#\/plants\/(-?\d+)$/.exec(path)?.[1] ?? '',
    after,
    page: after === '' ? 1 : Math.max(2, Math.trunc(Number(text('page'))) || 2),
    filter: text('filter'),
    everywhere: values.has('everywhere') && text('filter') !== '',
    sort: text('sort'),
  }
}

/** The fragment of an address. It leaves out what is as at the start. */
export function formatAddress({ plant, ...list }: Address): string {
  if (plant !== '') return `#/plants/${plant}`
  const given = Object.entries(list).filter(([name, value]) => value !== START[name as keyof Address])
  return given.length === 0 ? '#/' : `#/?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}

/** How to go to an address: as a further step of the history, or in place of the present one. */
export type Go = (change: Partial<Address>, how?: 'step' | 'replace') => void

/**
 * The present address, and a function that goes to another one: what `change` does not name stays. The state of a step says
 * whether the step before it is in this history, too.
 */
export function useAddress(): readonly [Address, Go] {
  const [fragment, setFragment] = useState(location.hash)
  useEffect(() => {
    const follow = () => setFragment(location.hash)
    addEventListener('popstate', follow)
    return () => removeEventListener('popstate', follow)
  }, [])
  const address = parseAddress(fragment)
  const go: Go = (change, how = 'step') => {
    const next = formatAddress({ ...parseAddress(location.hash), ...change })
    if (how === 'replace') history.replaceState(history.state, '', next)
    else history.pushState({ hasBefore: true }, '', next)
    setFragment(next)
  }
  return [address, go]
}
