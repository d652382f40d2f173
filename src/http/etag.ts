import { plantJson } from '../domain/plant.ts'
import type { PlantCondition } from '../domain/store.ts'
import { jsonHeaders, respond } from './answers.ts'

/** The strong entity tag of an answer with this text (RFC 9110 §8.8.3). */
export const entityTagOf = (text: string): string => `"${Bun.SHA256.hash(text, 'base64url')}"`

/** One object for all answers, because a new one for each would cost 70 ns. */
const TAGGED = { headers: jsonHeaders('private, no-cache') }

/** JSON with its strong `ETag`. `link` is the value of `Link` (RFC 8288), or empty. */
export interface TaggedBody {
  readonly body: string | ArrayBuffer
  readonly bodyBytes: number
  readonly etag: string
  readonly link: string
}

/** Answers with a tagged body, or with 304 if the client has it already. */
export function answerTagged({ headers }: Request, { body, bodyBytes, etag, link }: TaggedBody): Response {
  const ifNoneMatch = headers.get('if-none-match')
  if (ifNoneMatch !== null && matchesTag(ifNoneMatch, etag, true))
    return new Response(null, { status: 304, headers: { etag } })
  const response = respond(body, TAGGED, bodyBytes)
  response.headers.set('etag', etag)
  if (link !== '') response.headers.set('link', link)
  return response
}

/** The preconditions of a write (RFC 9110 §13.1), if it has any. A malformed header never holds. */
export function conditionOf({ headers }: Request): PlantCondition | undefined {
  const ifMatch = headers.get('if-match')
  const ifNoneMatch = headers.get('if-none-match')
  if (ifMatch === null && ifNoneMatch === null) return undefined
  if (ifMatch === '*' && ifNoneMatch === null) return 'some'
  if (ifMatch === null && ifNoneMatch === '*') return 'none'
  return (stored) => {
    const etag = stored && entityTagOf(plantJson(stored))
    if (ifMatch !== null && !(etag && matchesTag(ifMatch, etag, false))) return false
    return ifNoneMatch === null || (ENTITY_TAGS.test(ifNoneMatch) && !(etag && matchesTag(ifNoneMatch, etag, true)))
  }
}

/**
 * Whether a list names an entity tag. `*` names any, and a malformed list none. `If-Match` compares strongly: there a tag with
 * `W/` does not count.
 */
const matchesTag = (header: string, etag: string, isWeak: boolean): boolean =>
  header === '*' ||
  (ENTITY_TAGS.test(header) &&
    header.match(ENTITY_TAG)?.some((tag) => tag === etag || (isWeak && tag === `W/${etag}`)) === true)

/** An entity tag (RFC 9110 §8.8.3), and a list of them, which may have empty elements (§5.6.1.2). */
const ENTITY_TAG = /(?:W\/)?"[!#-~\u0080-\u00ff]*"/g
const ELEMENT = `[ \\t]*(?:${ENTITY_TAG.source}[ \\t]*)?`
const ENTITY_TAGS = new RegExp(`^${ELEMENT}(?:,${ELEMENT})*$`)
