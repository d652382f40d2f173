/** The media type of every body of this API (RFC 8259 §11: no charset parameter). */
export const JSON_TYPE = 'application/json'

/** Whether clients may store an answer (RFC 9111): one with an `ETag`, and any other. */
export type CacheControl = 'private, no-cache' | 'no-store'

/** The headers of answers with a JSON body. To copy them from one `Headers` costs a third of a new object for each answer. */
export const jsonHeaders = (cacheControl: CacheControl): Headers =>
  new Headers({ 'content-type': JSON_TYPE, 'x-content-type-options': 'nosniff', 'cache-control': cacheControl })

const PLAIN = jsonHeaders('no-store')

/** An answer with a body that is JSON text already. */
export function json(
  body: string | ReadableStream<string> | null,
  { status = 200, headers = {} }: JsonOptions = {},
): Response {
  const response = new Response(body, { status, headers: PLAIN })
  for (const name in headers) response.headers.set(name, headers[name] ?? '')
  return response
}

interface JsonOptions {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}
