// Tested in test/http/page/page-answers.test.ts.
import type { Plant } from './rows.ts'

/** The error codes that the page treats in a way of their own. */
export const CODES = {
  ...{ tokenInvalid: 40102, scope: 40301, quota: 40302, notFound: 40402, exists: 40901, changed: 41201 },
  // Nobody has answered, as a proxy says it, or not in time, or something between did so.
  ...{ noAnswer: 50200, silent: 50400, foreign: 51100 },
  // The user has given up a change: it is not known whether it is done, or a look has shown that it is not.
  ...{ unknown: -1, notDone: -2 },
} as const

/** Of a proxy that gets no answer. */
const AWAY_STATUSES = [502, 503, 504]
/** After these a request is sent again: too many requests, nobody can serve now, or something between has answered. */
const PASSING_STATUSES = [429, ...AWAY_STATUSES, 511]
/** What these say of a request is true whoever says it: the runtime of the server, or a proxy. */
const BARE_STATUSES = [304, 400, 413, 429, 431]

/** Whether a request may succeed later, so that it ends only if the user gives it up. */
export const isPassing = (code: number) => PASSING_STATUSES.includes(Math.floor(code / 100))

/** Whether a write may be done or not after this, and a look tells more than the same request once more. */
export const isUnknown = (code: number) => code === CODES.silent || Math.floor(code / 100) === 500

/** An answer of the service, or what stands for another one. Without an error code it has plants, or what the token may do. */
export interface Answer
  extends Readonly<{ error: number; message: string; plants: readonly Plant[]; headers: Headers }> {
  readonly token?: Readonly<{ user: string; scope: 'read' | 'write'; expires?: string }>
}

/**
 * What an answer says. An answer of the service is JSON of its own form, or the 204 of a delete. Any other one is from something
 * between, like the login page of a proxy, and says nothing of plants.
 */
export function readAnswer(method: string, path: string, { status, headers }: Response, text: string): Answer {
  const json = headers.get('content-type')?.startsWith('application/json') ? parse(text) : undefined
  const answer = { error: 0, message: '', plants: [], headers }
  if (method === 'DELETE' && status === 204) return answer
  const { error, message } = json ?? {}
  if (Number.isInteger(error) && Math.floor(error / 100) === status && typeof message === 'string')
    return { ...answer, error, message }
  if (path === 'token' && status === 200 && typeof json?.user === 'string' && /^(read|write)$/.test(json.scope))
    return { ...answer, token: json }
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
