/** Makes the requests of a schedule. Each call may reuse the buffer of the last one. */
export type RequestMaker = (user: number, id: number) => Buffer

/** Lists of 20 by each user. */
export function listRequests(tokens: readonly string[]): RequestMaker {
  const requests = tokens.map((token) => Buffer.from(`GET /plants?limit=20 HTTP/1.1\r\n${commonHeaders(token)}\r\n`))
  return (user) => requests[user] ?? Buffer.alloc(0)
}

/**
 * Creates of plants with ids that have as many digits as `firstId`. Allocates nothing for a request, because garbage collections
 * delay the generator.
 */
export function createRequests(tokens: readonly string[], firstId: number): RequestMaker {
  const digits = String(firstId).length
  const requests = tokens.map((token) => {
    const body = `{"id":${firstId},"name":"Monstera deliciosa ${firstId}","tag":"evergreen"}`
    const head = `POST /plants HTTP/1.1\r\n${commonHeaders(token)}Content-Type: application/json\r\n`
    const request = Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
    return { request, places: [request.indexOf(`${firstId},`), request.lastIndexOf(`${firstId}"`)] }
  })
  return (user, id) => {
    const { request, places } = requests[user] ?? { request: Buffer.alloc(0), places: [] }
    for (const place of places) writeDigits(request, place, digits, id)
    return request
  }
}

const ZERO = 0x30

function writeDigits(request: Buffer, place: number, digits: number, id: number): void {
  let rest = id
  for (let position = place + digits - 1; position >= place; position--) {
    request[position] = ZERO + (rest % 10)
    rest = Math.floor(rest / 10)
  }
  if (rest > 0) throw new Error(`${id} has more than ${digits} digits`)
}

const commonHeaders = (token: string): string => `Host: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n`
