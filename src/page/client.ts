// Tested in test/http/socket/page-answers.test.ts.
import { entityTagOf } from '../domain/etag.ts'
import { type Answer, CODES, isPassing, readAnswer } from './answer.ts'
import { FIELD_NAMES, type Plant } from './fields.ts'
import { describePlant, describeRefusal } from './messages.ts'
import { recordUpdate, reset, set, state } from './state.ts'
import { forgetToken, hashOf, KEPT, type Kept } from './storage.ts'

/** A request or a change failed: the server refused it, or the user gave it up. The message is for people. */
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

/** The server answers with these before it does anything. */
const NOTHING_DONE = [42900, 42901, 50301, 50303]
/** The pause before a request is sent again, unless the server says another one. */
const RETRY_AFTER_S = 5

let token = ''
/** The largest id of those that are 0 or larger and were listed. */
export let largestId = 0n
/** The requests that wait to be sent again. They share one pause: it ends for all of them. */
const waiting: ((isSentAgain: boolean) => void)[] = []

/** Uses a token from now on, or none if it is empty. Nobody gets the answers to earlier requests any more. */
export function connect(next: string): void {
  token = next
  largestId = 0n
  waiting.length = 0
  set({ pause: undefined })
}

export function endPause(how: 'retry' | 'giveUp'): void {
  set({ pause: undefined })
  for (const resolve of waiting.splice(0)) resolve(how === 'retry')
}

/** Waits until a request may be sent again. Resolves to `false` if the user gives it up. */
function wait(message: string, seconds: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  waiting.push(resolve)
  if (state.pause === undefined || seconds < state.pause.seconds) set({ pause: { message, seconds } })
  return promise
}

/** What else a request has, and the error codes that do not reject. `noAnswer` stands for all after which it would wait. */
interface Sent extends Pick<RequestInit, 'body' | 'headers'> {
  readonly expected?: readonly number[]
}

/**
 * Sends a request, again and again if it may succeed later. Returns the answer of success, or the one with an `expected` error
 * code. Others reject with a `Refusal`. If the user gives up what may be done, the code is `unknown`.
 */
async function send(method: string, path: string, { expected = [], ...sent }: Sent = {}): Promise<Answer> {
  const sentToken = token
  // A header takes no other characters, and no token has any.
  const authorization = `Bearer ${token.replace(/[^!-~]/g, '?')}`
  const headers = { authorization, 'content-type': 'application/json', ...sent.headers }
  let mayBeDone = false
  for (;;) {
    const answer = await fetch(path, { cache: 'no-store', redirect: 'manual', ...sent, method, headers })
      .then(async (response) => readAnswer(method, path, response, await response.text()))
      .catch(() => ({ error: CODES.noAnswer, message: '', plants: [], headers: new Headers() }))
    const { error, message } = answer
    if (token === sentToken && error === CODES.tokenInvalid) endSession(describeRefusal(error, message))
    // Nobody waits for it any more.
    if (token !== sentToken) return new Promise<never>(() => {})
    const isExpected = expected.includes(isPassing(error) ? CODES.noAnswer : error)
    if (error === 0 || isExpected) return answer
    const refusal = new Refusal(error, describeRefusal(error, message))
    if (!isPassing(error)) throw refusal
    mayBeDone ||= !NOTHING_DONE.includes(error)
    if (await wait(refusal.message, Number(answer.headers.get('retry-after')) || RETRY_AFTER_S)) continue
    if (!mayBeDone || !expected.includes(CODES.unknown)) throw refusal
    set({ notice: describeRefusal(CODES.unknown, method) })
    return { ...answer, error: CODES.unknown }
  }
}

/** The token is used no more, and the page says why. What the tab keeps beside it stays until another token signs in. */
export function endSession(problem: string): void {
  forgetToken(token)
  connect('')
  reset(problem)
}

/** Keeps plants that were or may be deleted, or what is typed. Returns whether they survive a reload. */
export function keep(change: Partial<Kept>): boolean {
  set(change)
  const { user, deleted, maybeDeleted, panel, typed } = state
  return KEPT.write({ user, deleted, maybeDeleted, typed, panel: hasTyped() ? panel : undefined })
}

/** Whether somebody has typed in a form, and not stored it. */
export const hasTyped = () => Object.keys(state.typed).length > 0

/** Takes those that may be deleted for deleted if they are gone. A delete that is under way waits for its answer. */
export function settle(isGone: (plant: Plant) => boolean): void {
  const gone = state.maybeDeleted.filter((plant) => isGone(plant) && !state.busy.has(plant.id))
  if (gone.length === 0) return
  const maybeDeleted = state.maybeDeleted.filter((plant) => !gone.includes(plant))
  keep({ deleted: [...gone, ...state.deleted], maybeDeleted })
}

/** The SHA-256 of the token, or of nothing. */
export const tokenHash = () => hashOf(token)

/** What the server says of the token, and when the token ends by the clock of this browser: `NaN` without an end. */
export async function getToken() {
  const { token: { user = '', scope, expires = '' } = {}, headers } = await send('GET', 'token')
  const serverMs = Date.parse(headers.get('date') ?? '') || Date.now()
  return { user, canWrite: scope === 'write', endsAtMs: Date.now() + Date.parse(expires) - serverMs }
}

/** A page of a list with its `ETag`, and the query of the next one. The server gives it relative to the list. */
export async function listPlants(query: string) {
  const { plants, headers } = await send('GET', `plants${query}`)
  for (const { id } of plants) if (BigInt(id) > largestId) largestId = BigInt(id)
  return { plants, etag: etagOf(headers), next: /<(\?[^>]*)>/.exec(headers.get('link') ?? '')?.[1] }
}

/** The plants of a page if they are no more those with this `ETag`: a 304 rejects. Nobody is told if the server is away. */
export async function listChanged(query: string, etag: string) {
  const expected = [CODES.noAnswer]
  const { error, plants } = await send('GET', `plants${query}`, { headers: { 'if-none-match': etag }, expected })
  return error === 0 ? plants : undefined
}

/** A strong `ETag`, which a proxy that compresses makes a weak one. */
const etagOf = (headers: Headers) => (headers.get('etag') ?? '').replace(/^W\//, '')

/** The stored plant with its `ETag`. `undefined` if there is none. */
export async function getPlant(id: string) {
  const { error, plants, headers } = await send('GET', `plants/${id}?include=id`, { expected: [CODES.notFound] })
  if (error === CODES.notFound) settle((plant) => plant.id === id)
  return plants[0] && { plant: plants[0], etag: etagOf(headers) }
}

/** Creates a plant. If its id is taken, the message of the refusal shows the stored plant. */
export async function createPlant(plant: Plant): Promise<void> {
  await createFrom(toJson(plant), plant, (stored) => recordUpdate(plant.id, stored))
  recordUpdate(plant.id, plant)
}

/**
 * Creates the plant of a line of JSON. An equal one may be there already: browsers repeat requests by themselves, so it may come
 * from this request.
 */
export async function createFrom(body: string, plant: Partial<Plant>, onFound = (_stored?: Plant) => {}) {
  const { error } = await send('POST', 'plants', { body, expected: [CODES.exists, CODES.unknown] })
  if (error === 0) return 'added'
  if (plant.id === undefined) throw new Refusal(error, describeRefusal(error, ''))
  const stored = (await look('POST', plant.id))?.plant
  if (stored !== undefined && isSame(stored, plant)) return error === CODES.exists ? 'already there' : 'added'
  onFound(stored)
  const code = error === CODES.unknown && stored === undefined ? CODES.notDone : CODES.exists
  throw new Refusal(code, describeRefusal(code, stored ? describePlant(stored) : ''))
}

/** The stored plant after a request of which the page does not know whether it was done. Nobody knows if that fails, too. */
async function look(method: string, id: string) {
  try {
    return await getPlant(id)
  } catch (error) {
    const { message } = refusalIn(error)
    throw new Refusal(CODES.unknown, `${message} ${describeRefusal(CODES.unknown, method)}`)
  }
}

/**
 * Stores the `wanted` plant, or deletes it without one, but only while it is stored as it is `shown`: `undefined` if there is
 * none. Returns the plant that is stored then, and whether a request has done it. One that was done and then repeated is refused,
 * so the page reads the plant. If nobody has changed it, the page sends once more with the `ETag` that the server gives it.
 */
export async function write(id: string, shown: Plant | undefined, wanted: Plant | undefined) {
  const method = wanted ? 'PUT' : 'DELETE'
  const expected = [CODES.notFound, CODES.changed, CODES.unknown]
  let found = shown && { plant: shown, etag: tagOf(shown) }
  for (let round = 1; isSame(found?.plant, shown); round++) {
    if (round > 2) throw new Refusal(CODES.changed, describeRefusal(CODES.changed, method))
    if (shown && !wanted) keep({ maybeDeleted: [shown, ...without(shown)] })
    const headers = found ? { 'if-match': found.etag } : { 'if-none-match': '*' }
    const { error } = await send(method, `plants/${id}`, { body: wanted ? toJson(wanted) : null, headers, expected })
    if (error === 0 || error === CODES.notFound) return { stored: wanted, isDone: error === 0 }
    found = await look(method, id)
    if (error !== CODES.unknown) continue
    if (!isSame(found?.plant, shown) || isSame(shown, wanted)) return { stored: found?.plant, isDone: true }
    throw new Refusal(CODES.notDone, describeRefusal(CODES.notDone, method))
  }
  return { stored: found?.plant, isDone: false }
}

/** The `ETag` of a plant, as this version of the server computes it. */
const tagOf = (plant: Plant) => entityTagOf(JSON.stringify(plant, FIELD_NAMES.slice(1)), { hash: hashOf })

const without = (plant: Plant) => state.maybeDeleted.filter((each) => !isSame(each, plant))

/**
 * Deletes a plant, but only while it is stored as it is shown. Returns what has happened, and the plant as it was or is changed.
 * A browser repeats requests by itself, so this page may have deleted what is gone.
 */
export async function deletePlant(shown: Plant) {
  const wasGivenUp = without(shown).length < state.maybeDeleted.length
  try {
    const { stored, isDone } = await write(shown.id, shown, undefined)
    keep({ maybeDeleted: without(shown), deleted: stored ? state.deleted : [shown, ...state.deleted] })
    if (stored) return ['changed', stored] as const
    return [isDone || wasGivenUp ? 'deleted' : 'gone', shown] as const
  } catch (error) {
    // A request that was given up may arrive later.
    if (refusalIn(error).code > 0 && !wasGivenUp) keep({ maybeDeleted: without(shown) })
    throw error
  }
}

/** Whether two plants have the same values, or neither is there. */
export const isSame = (one: Partial<Plant> | undefined, other: Partial<Plant> | undefined): boolean =>
  FIELD_NAMES.every((field) => one?.[field] === other?.[field])

/** The JSON of a plant. An integer keeps the digits that were typed. Any other id is sent as text, and refused. */
export function toJson(plant: Partial<Plant>): string {
  const { id } = plant
  const json = JSON.stringify(plant, FIELD_NAMES)
  return id !== undefined && /^(?:0|-?[1-9]\d*)$/.test(id) ? json.replace(`"${id}"`, id) : json
}
