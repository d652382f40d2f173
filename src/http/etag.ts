import { jsonHeaders } from './answers.ts'

/** One object for all answers, because a new one for each would cost 70 ns. */
const TAGGED = { headers: jsonHeaders('private, no-cache') }

/** Answers with JSON and its strong `ETag`, or with 304 if the client has it already. A HEAD gets the length of the body alone. */
export function answerTagged(request: Request, etag: string, body: string | Uint8Array<ArrayBuffer>): Response {
  const ifNoneMatch = request.headers.get('if-none-match')
  if (ifNoneMatch !== null && matches(ifNoneMatch, etag)) return new Response(null, { status: 304, headers: { etag } })
  const isHead = request.method === 'HEAD'
  const response = new Response(isHead ? null : body, TAGGED)
  response.headers.set('etag', etag)
  if (isHead) response.headers.set('content-length', String(Buffer.byteLength(body)))
  return response
}

/** `If-None-Match` compares weakly (RFC 9110 §13.1.2): `W/` does not count, and `*` matches any answer. */
function matches(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true
  for (const [, tag] of ifNoneMatch.matchAll(ENTITY_TAGS)) if (tag === etag) return true
  return false
}

/** The entity tags of a list, without their `W/`. Other text matches nothing. */
const ENTITY_TAGS = /(?<=^|,)[ \t]*(?:W\/)?("[^"]*")[ \t]*(?=,|$)/g
