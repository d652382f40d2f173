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
  // Nobody has answered, as a proxy says it, or something between did so.
  ...{ noAnswer: 50200, foreign: 51100 },
} as const

/** Of a proxy that gets no answer. */
const AWAY_STATUSES = [502, 503, 504]
/** After these a request is sent again: too many requests, nobody can serve now, or something between has answered. */
const PASSING_STATUSES = [429, ...AWAY_STATUSES, 511]
/** What these say of a request is true whoever says it: the runtime of the server, or a proxy. */
const BARE_STATUSES = [400, 413, 429, 431]
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

interface Answer {
  /** The error code, or 0 for a success. */
  readonly error: number
  readonly message: string
  /** The plants of a success. */
  readonly plants: readonly Plant[]
  readonly headers: Headers
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
async function send(method: string, path: string, { expected = [], ...sent }: Sent = {}): Promise<Answer> {
  const sentToken = token
  // A header takes no other characters, and no token has any.
  const authorization = `Bearer ${token.replace(/[^!-~]/g, '?')}`
  const init = {
    method,
    headers: { authorization, 'content-type': 'application/json', ...sent.headers },
    body: sent.body ?? null,
  }
  for (;;) {
    const answer = await fetch(path, { ...init, cache: 'no-store', redirect: 'manual' })
      .then(async (response) => readAnswer(method, path, response, await response.text()))
      .catch(() => ({ error: CODES.noAnswer, message: '', plants: [], headers: new Headers() }))
    const { error, message, headers } = answer
    if (token === sentToken && error === CODES.tokenInvalid) endSession()
    // Nobody waits for it any more.
    if (token !== sentToken) return new Promise<never>(() => {})
    if (error === 0 || expected.includes(error)) return answer
    const refusal = new Refusal(error, describeRefusal(error, message))
    if (!PASSING_STATUSES.includes(Math.floor(error / 100))) throw refusal
    await wait(refusal.message, Number(headers.get('retry-after')) || RETRY_AFTER_S)
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
  const { plants, headers } = await send('GET', `plants${query}`)
  return { plants, next: /<(\?[^>]*)>/.exec(headers.get('link') ?? '')?.[1] }
}

/** The stored plant with its strong `ETag`, which a proxy that compresses makes a weak one. `undefined` if there is none. */
export async function getPlant(id: string) {
  const { plants, headers } = await send('GET', `plants/${id}?include=id`, { expected: [CODES.notFound] })
  return plants[0] && { plant: plants[0], etag: (headers.get('etag') ?? '').replace(/^W\//, '') }
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

/**
 * What an answer says. An answer of the service is JSON of its own form, or the 204 of a delete. Any other one is from something
 * between, like the login page of a proxy, and says nothing of plants.
 */
function readAnswer(method: string, path: string, { status, headers }: Response, text: string): Answer {
  const json = headers.get('content-type')?.startsWith('application/json') ? parse(text) : undefined
  const answer = { error: 0, message: '', plants: [], headers }
  if (method === 'DELETE' && status === 204) return answer
  if (Math.floor(json?.error / 100) === status && typeof json?.message === 'string') return { ...answer, ...json }
  const plants: readonly Partial<Plant>[] = [json].flat()
  const isPlant = (each: Partial<Plant>): each is Plant =>
    typeof each?.name === 'string' && (method !== 'GET' || typeof each.id === 'string')
  const isExpected = method !== 'DELETE' && Array.isArray(json) === path.startsWith('plants?')
  if (isExpected && [200, 201].includes(status) && plants.every(isPlant)) return { ...answer, plants }
  if (BARE_STATUSES.includes(status)) return { ...answer, error: status * 100, message: `the status is ${status}` }
  return { ...answer, error: AWAY_STATUSES.includes(status) ? CODES.noAnswer : CODES.foreign }
}

/** What JSON says, with ids as text, or `undefined`. Within a name a quote follows a backslash, so no name looks like an id. */
export function parse(json: string) {
  try {
    return JSON.parse(json.replace(/"id"\s*:\s*(-?\d+)/g, '"id":"$1"'))
  } catch {
    return undefined
  }
}

/** The JSON of a plant. An integer keeps the digits that were typed. Any other id is sent as text, and refused. */
export function toJson(plant: Partial<Plant>): string {
  const { id } = plant
  const json = JSON.stringify(plant, FIELD_NAMES)
  return id !== undefined && /^(?:0|-?[1-9]\d*)$/.test(id) ? json.replace(`"${id}"`, id) : json
}
