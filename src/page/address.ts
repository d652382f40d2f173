// Tested in test/http/page/page-lists.test.ts.
/**
 * What the page shows: the only plant that is shown if there is one, and the list behind it, which begins behind the id `after`,
 * its number for people, and the text that plants must contain. It is in the fragment of the URL, which no server or log gets.
 */
export type Address = Readonly<{ plant: string; after: string; page: number; filter: string }>

const START: Address = { plant: '', after: '', page: 1, filter: '' }

/** Reads a fragment like `#/plants/42` or `#/?after=99&page=3&filter=fern`. What it cannot read is as at the start. */
export function parseAddress(fragment: string, before = START): Address {
  const [path = '', query = ''] = fragment.split('?')
  const plant = /^#\/plants\/(-?\d+)$/.exec(path)?.[1]
  if (plant !== undefined) return { ...before, plant }
  const values = new URLSearchParams(query)
  const text = (name: string) => values.get(name) ?? ''
  const after = /^-?\d+$/.test(text('after')) ? text('after') : ''
  const page = after === '' ? 1 : Math.max(2, Math.trunc(Number(text('page'))) || 2)
  return { plant: '', after, page, filter: text('filter') }
}

/** The fragment of an address. It leaves out what is as at the start. */
export function formatAddress({ plant, ...list }: Address): string {
  if (plant !== '') return `#/plants/${plant}`
  const given = Object.entries(list).filter(([name, value]) => value !== START[name as keyof Address])
  return given.length === 0 ? '#/' : `#/?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
}
