/** A row of the table: the bytes to send on a connection of their own, and all answers. */
export type Row = readonly [
  name: string,
  sent: string,
  /**
   * Each answer in its order: its error code, or its status where it has none; an error of three digits is the runtime's
   * own, without a body. `next` answers a request that is sent behind: without it the connection has ended.
   */
  answers: string,
  /** The row of docs/reference/http.md that explains an answer that differs from RFC 9110 and RFC 9112. */
  listed?: string,
]

export const CHUNKED = 'Transfer-Encoding: chunked\r\n'
export const LAST_CHUNK = '0\r\n\r\n'
/** A request that must not be answered, because it is part of a body or a header. */
export const HIDDEN = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'

/** Requests with the token of user `me`. `lines` are further lines of the head, with their ends. */
export type Requests = ReturnType<typeof requestsOf>

/** Makes requests. Each plant has an id of its own, and its name has that id. */
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
    /** A plant with these lines for its length; `#` stands for the true length. */
    sized(lines: string) {
      const body = plant()
      return post(lines.replaceAll('#', String(body.length)), body)
    },
    /** A plant in one chunk, with these lines for its coding. */
    coded(lines: string) {
      const body = plant()
      return post(lines, `${body.length.toString(16)}\r\n${body}\r\n${LAST_CHUNK}`)
    },
    /** A chunked body; `P` stands for a plant, and `S` for the size of its chunk. */
    chunked(chunks: string) {
      const body = plant()
      return post(CHUNKED, chunks.replace('P', body).replace('S', body.length.toString(16)))
    },
    /** A request without a token. */
    ofStranger: (lines: string, body: string) =>
      `POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${lines}\r\n${body}`,
  }
}
