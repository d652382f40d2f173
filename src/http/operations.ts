import { DOCS_PATHS } from './docs/docs-paths.ts'

/** What requests are counted and logged as. No path of a client's is ever a name here. */
export const OPERATIONS = ['createPlant', 'listPlants', 'deletePlant', 'health', 'ready', 'docs', 'other'] as const
export type Operation = (typeof OPERATIONS)[number]

const PLANTS = '/plants'
const PLANT = '/plants/'
const OTHER_READS: ReadonlyMap<string, Operation> = new Map([
  ['/healthz', 'health'],
  ['/readyz', 'ready'],
  ...Object.values(DOCS_PATHS).map((path) => [path, 'docs'] as const),
])

/** What a request asks for; `other` where nothing of ours takes it, and for OPTIONS. */
export function operationOf(method: string, url: string): Operation {
  const isRead = method === 'GET' || method === 'HEAD'
  const start = pathStart(url)
  // First what comes most, without a text of its own for the path.
  if (url.startsWith(PLANTS, start) && pathEnd(url, start) === start + PLANTS.length) {
    if (isRead) return 'listPlants'
    return method === 'POST' ? 'createPlant' : 'other'
  }
  const path = pathOf(url)
  if (isRead) return OTHER_READS.get(path) ?? 'other'
  const isPlant = path.startsWith(PLANT) && path.length > PLANT.length && !path.includes('/', PLANT.length)
  return method === 'DELETE' && isPlant ? 'deletePlant' : 'other'
}

/** The path of a URL, as it was sent, without the query. */
export function pathOf(url: string): string {
  const start = pathStart(url)
  return url.slice(start, pathEnd(url, start))
}

/** Behind the scheme and the host, unless the URL is a path itself. */
const pathStart = (url: string): number => (url.startsWith('/') ? 0 : url.indexOf('/', 'https://'.length))

function pathEnd(url: string, start: number): number {
  const end = url.indexOf('?', start)
  return end === -1 ? url.length : end
}
