import { FIELD_NAMES, type Plant } from './fields.ts'
import { describePlant, describeRefusal } from './messages.ts'

/** A page of plants, and the query of the next one. */
export interface PlantPage {
  readonly plants: readonly Plant[]
  readonly next: string | undefined
}

/** A request failed for good: the server refused it, or the user gave it up. The message is for people. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message)
  }
}

/** The refusal that was thrown. Any other error is a bug, and is thrown again. */
export function refusalIn(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  throw error
}

/** The error codes that the page treats in a way of their own. */
export const CODES = {
  ...{ idInvalid: 40004, tokenInvalid: 40102, readOnly: 40301 },
  ...{ notFound: 40402, exists: 40901, changed: 41201 },
} as const

/** Too many requests, and answers of a server or a proxy that cannot serve now. */
const PASSING_STATUSES = [429, 502, 503, 504]
/** The pause before a request is sent again, unless the server says another one. */
const RETRY_AFTER_S = 5

/** Waits until a request may be sent again. Rejects with a `Refusal` if the user gives it up. */
export type Wait = (message: string, seconds: number) => Promise<void>

/** What `connect` returns. */
export type Client = ReturnType<typeof connect>

/** A token that the server has accepted. */
export interface Session {
  readonly client: Client
  readonly canWrite: boolean
}

/** What came of a delete: the plant is deleted, it was gone before, or it has other values than those that were shown. */
export type Removal = 'deleted' | 'gone' | Plant

interface Sent {
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Error codes that do not reject. */
  readonly expected?: readonly number[]
}

/** Returns a function that sends requests with a token. It returns the answer of success, or the one with an `expected` error code. */
function sender(token: string, wait: Wait, onInvalid: (message: string) => void) {
  // A header takes no other characters, and no token has any.
  const authorization = `Bearer ${token.replace(/[^!-~]/g, '?')}`
  return async (method: string, path: string, { body, headers, expected = [] }: Sent = {}) => {
    const sent = { authorization, 'content-type': 'application/json', ...headers }
    /** An earlier try got no answer, or one that leaves open what has happened. */
    let mayHaveHappened = false
    for (;;) {
      const answer = await fetch(path, { method, headers: sent, body: body ?? null, cache: 'no-store' })
        .then(async (response) => ({ response, text: await response.text() }))
        .catch(() => ({ response: Response.error(), text: '' }))
      const { error, message } = errorIn(answer.response, answer.text)
      if (error === 0 || expected.includes(error)) return { ...answer, error, mayHaveHappened }
      const refusal = new Refusal(error, describeRefusal(error, message))
      if (error === CODES.tokenInvalid) onInvalid(refusal.message)
      const status = Math.floor(error / 100)
      if (!PASSING_STATUSES.includes(status)) throw refusal
      mayHaveHappened ||= status !== 429
      await wait(refusal.message, Number(answer.response.headers.get('retry-after')) || RETRY_AFTER_S)
    }
  }
}

/** The API for the owner of a token. A request that may succeed later is sent again after `wait`. Others reject with a `Refusal`. */
export function connect(...options: Parameters<typeof sender>) {
  const send = sender(...options)
  /** The ids of plants whose delete the user gave up before it had an answer. */
  const doubtful = new Set<string>()

  /** The page of a list. The server gives the query of the next one relative to the list. */
  const list = async (query: string): Promise<PlantPage> => {
    const { text, response } = await send('GET', `plants${query}`)
    return { plants: plantsIn(text), next: /<(\?[^>]*)>/.exec(response.headers.get('link') ?? '')?.[1] }
  }

  /** The stored plant with its strong `ETag`, which a proxy that compresses makes a weak one. `undefined` if there is none. */
  const get = async (id: string) => {
    const { error, text, response } = await send('GET', `plants/${id}?include=id`, { expected: [CODES.notFound] })
    const [plant] = error === 0 ? plantsIn(`[${text}]`) : []
    return plant && { plant, etag: (response.headers.get('etag') ?? '').replace(/^W\//, '') }
  }

  /** Creates the plant of a line of JSON. If its id is taken, the message of the refusal shows the stored plant. */
  const createFrom = async (line: string, plant: Partial<Plant>): Promise<void> => {
    const { error, mayHaveHappened } = await send('POST', 'plants', { body: line, expected: [CODES.exists] })
    if (error === 0) return
    const stored = plant.id === undefined ? undefined : (await get(plant.id))?.plant
    // The answer to an earlier try may have been lost.
    if (mayHaveHappened && stored !== undefined && isSame(stored, plant)) return
    throw new Refusal(error, describeRefusal(error, stored === undefined ? '' : describePlant(stored)))
  }

  return {
    ...{ list, get, createFrom },
    /** The plants of a list from its first page on, page by page. */
    pages: (query: string) => readPages(list, query),
    create: (plant: Partial<Plant>) => createFrom(toJson(plant), plant),

    /** Whether the token may write. The server refuses this request for its token, then for its scope, then for its id. */
    async canWrite(): Promise<boolean> {
      const { error } = await send('DELETE', 'plants/none', { expected: [CODES.idInvalid, CODES.readOnly] })
      return error === CODES.idInvalid
    },

    /** Deletes a plant, but only while it is stored as it is shown: another client may have changed it. */
    async remove(shown: Plant): Promise<Removal> {
      const found = await get(shown.id)
      if (found === undefined) return doubtful.delete(shown.id) ? 'deleted' : 'gone'
      if (!isSame(found.plant, shown)) return found.plant
      const headers = { 'if-match': found.etag }
      const expected = [CODES.notFound, CODES.changed]
      doubtful.add(shown.id)
      const { error, mayHaveHappened } = await send('DELETE', `plants/${shown.id}`, { headers, expected })
      doubtful.delete(shown.id)
      if (error === CODES.changed) return (await get(shown.id))?.plant ?? 'gone'
      // After an answer that was lost, the plant is gone because this request has deleted it.
      return error === 0 || mayHaveHappened ? 'deleted' : 'gone'
    },
  }
}

async function* readPages(
  list: (query: string) => Promise<PlantPage>,
  first: string,
): AsyncGenerator<readonly Plant[]> {
  for (let query: string | undefined = first; query !== undefined; ) {
    const page: PlantPage = await list(query)
    yield page.plants
    query = page.next
  }
}

/** Whether two plants have the same values. */
export const isSame = (one: Partial<Plant>, other: Partial<Plant>): boolean =>
  FIELD_NAMES.every((field) => one[field] === other[field])

/** The error in an answer; 0 for a success. Without an answer it is 502, as a proxy says it. */
function errorIn({ ok, status }: Response, text: string): { readonly error: number; readonly message: string } {
  if (ok) return { error: 0, message: '' }
  if (status === 0) return { error: 50200, message: '' }
  const unknown = { error: status * 100, message: `the answer has the status ${status}` }
  try {
    const found = JSON.parse(text)
    // A proxy may have JSON of its own.
    return Number.isInteger(found?.error) && typeof found.message === 'string' ? found : unknown
  } catch {
    return unknown
  }
}

/** The plants of a list in JSON. Within a name a quote follows a backslash, so no name looks like an id. */
export const plantsIn = (list: string): readonly Plant[] => JSON.parse(list.replace(/"id"\s*:\s*(-?\d+)/g, '"id":"$1"'))

/** The JSON of a plant. An integer keeps the digits that were typed. Any other id is sent as text, and refused. */
export function toJson(plant: Partial<Plant>): string {
  const { id } = plant
  const json = JSON.stringify(plant, FIELD_NAMES)
  return id !== undefined && /^(?:0|-?[1-9]\d*)$/.test(id) ? json.replace(`"${id}"`, id) : json
}
