import { FIELD_NAMES, type Plant } from './fields.ts'
import { describePlant, describeRefusal } from './messages.ts'
import { reset, set, state } from './state.ts'
import { clearStorage } from './storage.ts'

/** A request or a change failed for good: the server refused it, or the user gave it up. The message is for people. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message)
  }
}

/** A plant is not as the page has shown it, so it was not changed. `now` is `undefined` if it is gone. */
export class Conflict extends Refusal {
  constructor(readonly now: Plant | undefined) {
    const what = now ? 'has changed since you opened it' : 'is deleted'
    super(CODES.changed, `This plant ${what}, so your change is not stored.`)
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

let token = ''
/** The requests that wait to be sent again. They share one pause: it ends for all of them. */
const waiting: { readonly retry: () => void; readonly giveUp: () => void }[] = []

/** Uses a token from now on, or none if it is empty. Nobody gets the answers to earlier requests any more. */
export function connect(next: string): void {
  token = next
  waiting.length = 0
  maybeDeleted.clear()
  set({ pause: undefined })
}

export function endPause(how: 'retry' | 'giveUp'): void {
  set({ pause: undefined })
  for (const each of waiting.splice(0)) each[how]()
}

/** Waits until a request may be sent again. Rejects with a `Refusal` if the user gives it up. */
function wait(message: string, seconds: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  waiting.push({ retry: resolve, giveUp: () => reject(new Refusal(0, message)) })
  if (state.pause === undefined || seconds < state.pause.seconds) set({ pause: { message, seconds } })
  return promise
}

interface Sent {
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Error codes that do not reject. */
  readonly expected?: readonly number[]
}

/**
 * Sends a request, again and again if it may succeed later. Returns the answer of success, or the one with an `expected` error
 * code. Others reject with a `Refusal`.
 */
async function send(method: string, path: string, { body, headers, expected = [] }: Sent = {}) {
  const sentToken = token
  // A header takes no other characters, and no token has any.
  const authorization = `Bearer ${token.replace(/[^!-~]/g, '?')}`
  const init = {
    method,
    headers: { authorization, 'content-type': 'application/json', ...headers },
    body: body ?? null,
  }
  for (;;) {
    const answer = await fetch(path, { ...init, cache: 'no-store' })
      .then(async (response) => ({ response, text: await response.text() }))
      .catch(() => ({ response: Response.error(), text: '' }))
    const { error, message } = errorIn(answer.response, answer.text)
    if (token === sentToken && error === CODES.tokenInvalid) endSession()
    // Nobody waits for it any more.
    if (token !== sentToken) return new Promise<never>(() => {})
    if (error === 0 || expected.includes(error)) return { ...answer, error }
    const refusal = new Refusal(error, describeRefusal(error, message))
    if (!PASSING_STATUSES.includes(Math.floor(error / 100))) throw refusal
    await wait(refusal.message, Number(answer.response.headers.get('retry-after')) || RETRY_AFTER_S)
  }
}

/** The token is valid no more. Another user of the tab gets nothing. */
function endSession(): void {
  clearStorage(token)
  connect('')
  reset(describeRefusal(CODES.tokenInvalid, ''))
}

/** Whether the token may write. The server refuses this request for its token, then for its scope, then for its id. */
export async function mayWrite(): Promise<boolean> {
  const { error } = await send('DELETE', 'plants/none', { expected: [CODES.idInvalid, CODES.readOnly] })
  return error === CODES.idInvalid
}

/** A page of a list, and the query of the next one. The server gives it relative to the list. */
export async function listPlants(query: string) {
  const { text, response } = await send('GET', `plants${query}`)
  return { plants: plantsIn(text), next: /<(\?[^>]*)>/.exec(response.headers.get('link') ?? '')?.[1] }
}

/** The stored plant with its strong `ETag`, which a proxy that compresses makes a weak one. `undefined` if there is none. */
export async function getPlant(id: string) {
  const { error, text, response } = await send('GET', `plants/${id}?include=id`, { expected: [CODES.notFound] })
  const [plant] = error === 0 ? plantsIn(`[${text}]`) : []
  return plant && { plant, etag: (response.headers.get('etag') ?? '').replace(/^W\//, '') }
}

/** Creates a plant. If its id is taken, the message of the refusal shows the stored plant. */
export const createPlant = (plant: Partial<Plant>) => createFrom(toJson(plant), plant)

/** Creates the plant of a line of JSON. Browsers repeat requests by themselves, so an equal plant may come from this request. */
export async function createFrom(line: string, plant: Partial<Plant>): Promise<void> {
  const { error } = await send('POST', 'plants', { body: line, expected: [CODES.exists] })
  if (error === 0) return
  const stored = plant.id === undefined ? undefined : (await getPlant(plant.id))?.plant
  if (stored !== undefined && isSame(stored, plant)) return
  throw new Refusal(error, describeRefusal(error, stored === undefined ? '' : describePlant(stored)))
}

/**
 * Stores a plant, but only while the stored one is as it is `shown`: `undefined` if there is none. Returns the plant that is
 * stored then. A repeated request is refused after it was done, so the page reads the plant.
 */
export async function replacePlant(shown: Plant | undefined, wanted: Plant): Promise<Plant | undefined> {
  const found = await getPlant(wanted.id)
  if (!isSame(found?.plant, shown)) return found?.plant
  const headers = found ? { 'if-match': found.etag } : { 'if-none-match': '*' }
  const sent = { body: toJson(wanted), headers, expected: [CODES.changed] }
  const { error } = await send('PUT', `plants/${wanted.id}`, sent)
  return error === 0 ? wanted : (await getPlant(wanted.id))?.plant
}

/** Plants whose delete was sent and has no answer: it is under way, or the user gave it up. */
export const maybeDeleted = new Set<Plant>()

/**
 * Deletes a plant, but only while it is stored as it is shown: another client may have changed it. Returns whether this page has
 * deleted it or it was gone before, or else the plant as it is now.
 */
export async function deletePlant(shown: Plant): Promise<'deleted' | 'gone' | Plant> {
  const found = await getPlant(shown.id)
  if (found === undefined) return maybeDeleted.delete(shown) ? 'deleted' : 'gone'
  if (!isSame(found.plant, shown)) return found.plant
  const options = { headers: { 'if-match': found.etag }, expected: [CODES.notFound, CODES.changed] }
  maybeDeleted.add(shown)
  const { error } = await send('DELETE', `plants/${shown.id}`, options)
  maybeDeleted.delete(shown)
  if (error === CODES.changed) return (await getPlant(shown.id))?.plant ?? 'gone'
  // A plant that is gone may be so because the browser has repeated this request.
  return 'deleted'
}

/** Whether two plants have the same values, or neither is there. */
export const isSame = (one: Partial<Plant> | undefined, other: Partial<Plant> | undefined): boolean =>
  FIELD_NAMES.every((field) => one?.[field] === other?.[field])

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
