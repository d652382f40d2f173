/** The media type of every body of this API (RFC 8259 §11: no charset parameter). */
export const JSON_TYPE = 'application/json'

/** An answer whose body is JSON text already. */
export const json = (
  body: string | ReadableStream<string> | null,
  { status = 200, headers = {} }: JsonOptions = {},
): Response => new Response(body, { status, headers: { 'content-type': JSON_TYPE, ...headers } })

interface JsonOptions {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}
