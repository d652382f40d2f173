/** A line of the table: what is sent on a connection of its own, and all that is answered. */
export type Row = readonly [
  name: string,
  sent: string,
  /**
   * Each answer in its order: its error code, or its status where it has none; an error of three digits is the runtime's
   * own, without a body. `next` answers a request that is sent behind: without it the connection has ended.
   */
  answers: string,
  /** Where RFC 9110 and RFC 9112 say something else: the line of the README that says what this does, and why. */
  listed?: string,
]

export const CHUNKED = 'Transfer-Encoding: chunked\r\n'
export const LAST_CHUNK = '0\r\n\r\n'
/** A request that must not be found where it is no request. */
export const HIDDEN = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'

/** Requests, with what lets user `me` in where nothing else is said. `lines` are further lines of the head, with their ends. */
export type Requests = ReturnType<typeof requestsOf>

/** Makes requests. Each plant has an id of its own, and is named after it. */
export function requestsOf(token: string) {
  let lastId = 0
  const plant = () => `{"id":${++lastId},"name":"p${lastId}"}`
  const credentials = `Host: a\r\nAuthorization: Bearer ${token}\r\n`
  const head = (requestLine: string, lines = '') => `${requestLine}\r\n${credentials}${lines}\r\n`
  const post = (lines: string, body: string) =>
    head('POST /plants HTTP/1.1', `Content-Type: application/json\r\n${lines}`) + body
  return {
    head,
    get: (lines = '', target = '/plants?limit=0') => head(`GET ${target} HTTP/1.1`, lines),
    delete: (target: string) => head(`DELETE ${target} HTTP/1.1`),
    post,
    /** A plant whose length these lines say; `#` is what it is. */
    sized(lines: string) {
      const body = plant()
      return post(lines.replaceAll('#', String(body.length)), body)
    },
    /** A plant in one chunk; these lines say how it is encoded. */
    coded(lines: string) {
      const body = plant()
      return post(lines, `${body.length.toString(16)}\r\n${body}\r\n${LAST_CHUNK}`)
    },
    /** A chunked body as it is given; `P` is a plant, and `S` the size of its chunk. */
    chunked(chunks: string) {
      const body = plant()
      return post(CHUNKED, chunks.replace('P', body).replace('S', body.length.toString(16)))
    },
    /** A request of somebody without a token. */
    ofStranger: (lines: string, body: string) =>
      `POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${lines}\r\n${body}`,
  }
}
