import type { PacedRequest } from '../support/paced-requests.ts'
import type { Random } from '../support/random.ts'
import { formatRequest } from '../support/raw-connection.ts'
import { contentOf, plantOf, takeRandom } from './history.ts'

/** How many plants there are at a time. Then as many are deleted as are made, and as many are replaced. */
const LIVE_PLANTS = 5000
/** Of a thousand requests. */
const WRITES = 650
const LISTS = 250

/** A token that may write, one that may read, and one that was revoked. */
export interface MixTokens {
  readonly write: string
  readonly read: string
  readonly revoked: string
}

type Expected = readonly [status: number, request: string]

/** Requests of all kinds and their expected answers: creates, puts and deletes, lists, and every kind of refusal. */
export function mixRequests(random: Random) {
  const live: number[] = []
  const possible = new Set<number>()
  const wrong: string[] = []
  let nextId = 1
  let versions = 0
  let tokens: MixTokens = { write: '', read: '', revoked: '' }

  const expecting = ([status, request]: Expected, done = () => {}): PacedRequest => ({
    request,
    onAnswer(answer) {
      if (answer.status === status) done()
      else wrong.push(`${answer.status} instead of ${status}: ${answer.body.slice(0, 100)}`)
    },
  })
  /** Until its answer has come, the plant may be there or not. */
  const write = (id: number, expected: Expected, done = () => {}) => {
    possible.add(id)
    return expecting(expected, () => {
      possible.delete(id)
      done()
    })
  }
  const create = (id = nextId++) =>
    write(id, [200, formatRequest('POST', '/plants', tokens.write, plantOf(id))], () => void live.push(id))
  const put = (id: number, status: number) =>
    write(
      id,
      [status, formatRequest('PUT', `/plants/${id}`, tokens.write, contentOf({ version: ++versions }, plantOf(id)))],
      () => void live.push(id),
    )
  const make = () => put(nextId++, 201)
  const makeAny = () => (random(2) === 0 ? create() : make())
  const remove = (id = takeRandom(live, random) ?? 0) =>
    write(id, [204, formatRequest('DELETE', `/plants/${id}`, tokens.write)])
  const change = () => (random(2) === 0 ? remove() : put(takeRandom(live, random) ?? 0, 200))

  return {
    /** Sends other tokens from now on. */
    useTokens(next: MixTokens): void {
      tokens = next
    },
    next(): PacedRequest {
      const kind = random(1000)
      if (kind < WRITES) return live.length < LIVE_PLANTS ? makeAny() : change()
      if (kind < WRITES + LISTS) {
        // Two in a thousand requests read a whole list.
        const path = random(125) === 0 ? '/plants' : '/plants?limit=20'
        return expecting([200, formatRequest('GET', path, tokens.read)])
      }
      const refused = refusedRequests(tokens)
      return expecting(refused[random(refused.length)] ?? [200, ''])
    },
    /** A create or put for a connection that is cut before the answer. */
    writeToCut: () => makeAny().request,
    /** The unexpected answers. */
    wrong,
    /** Ids of the plants that must be there, and ids of plants that may be there. */
    plants: () => ({ live, possible }),
  }
}

const BODY_MAX = 64 * 1024

/** Requests that are refused, with their status. None of them ends the connection. */
function refusedRequests({ write, read, revoked }: MixTokens): readonly Expected[] {
  const json = (body: object | string) => formatRequest('POST', '/plants', write, body)
  const put = (id: number, token = write, condition = '') =>
    formatRequest('PUT', `/plants/${id}`, token, { id: -1, name: 'Fern' }, condition)
  return [
    [400, json('{"id":')],
    [400, json('{"id":"1","name":1}')],
    [400, formatRequest('GET', '/plants?limit=x', write)],
    [400, formatRequest('DELETE', '/plants/x', write)],
    [400, put(1)],
    [401, 'GET /plants?limit=1 HTTP/1.1\r\nHost: a\r\n\r\n'],
    [401, formatRequest('GET', '/plants?limit=1', 'plst_unknown')],
    [401, formatRequest('GET', '/plants?limit=1', revoked)],
    [403, formatRequest('DELETE', '/plants/1', read)],
    [403, put(-1, read)],
    [404, formatRequest('GET', '/nowhere', write)],
    [404, formatRequest('DELETE', '/plants/-1', write)],
    [405, formatRequest('PUT', '/plants', write)],
    [412, put(-1, write, 'If-Match: *\r\n')],
    [413, json({ id: 1, name: 'x'.repeat(BODY_MAX) })],
    [415, json('{}').replace('application/json', 'text/plain')],
  ]
}
