import type { Server } from './servers.ts'

/** An answer without the headers that the runtime adds. */
export interface CapturedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A request that is sent before the measurement, to compare answers. */
export interface Probe {
  readonly method: string
  readonly path: string
  readonly token: string
  readonly body?: object
}

/** Headers of the connection, not of the answer. */
const RUNTIME_HEADERS = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])

/** Larger than any id under load, and exact as a double. */
const PROBED_ID = 8_000_000_000_000_000

const LIST_PATH = '/plants?limit=20'
const UNKNOWN_TOKEN = 'plst_00000000000000000000000000000000000000000000000000000'

/** The list that most rows ask for. */
export const listProbe = (token: string): Probe => ({ method: 'GET', path: LIST_PATH, token })

/** Creates a plant that no load creates. */
export const createProbe = (token: string): Probe => ({
  method: 'POST',
  path: '/plants',
  token,
  body: { id: PROBED_ID, name: `Monstera deliciosa ${PROBED_ID}`, tag: 'evergreen' },
})

/** Deletes the plant of `createProbe`. */
export const deleteProbe = (token: string): Probe => ({ method: 'DELETE', path: `/plants/${PROBED_ID}`, token })

/** Sends a request once. */
export async function capture({ url }: Pick<Server, 'url'>, { method, path, token, body }: Probe) {
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !RUNTIME_HEADERS.has(name)))
  const answer: CapturedAnswer = { status: response.status, headers, body: await response.text() }
  return answer
}

/** The answers to a list, a create and a delete. The delete removes the created plant again. */
export async function captureAll(server: Server, token: string) {
  const list = await capture(server, listProbe(token))
  const created = await capture(server, createProbe(token))
  const deleted = await capture(server, deleteProbe(token))
  return { list, created, deleted }
}

/**
 * Rejects unless all servers answer a list, a create and a delete with the same statuses and bodies, and refuse an
 * unknown token.
 */
export async function requireSameAnswers(servers: readonly Server[], token: string): Promise<void> {
  const seen = await Promise.all(
    servers.map(async (server) => {
      const answers = Object.values(await captureAll(server, token)).map(({ status, body }) => `${status} ${body}`)
      const { status } = await capture(server, listProbe(UNKNOWN_TOKEN))
      return { name: server.name, text: [...answers, status].join('\n') }
    }),
  )
  const [first] = seen
  if (!first?.text.startsWith('200 [{') || !first.text.endsWith('\n401')) throw new Error(`odd answers: ${first?.text}`)
  for (const { name, text } of seen) {
    if (text !== first.text) throw new Error(`${name} answers\n${text}\nand ${first.name}\n${first.text}`)
  }
}

/** Rejects unless a server answers a request with the same body, and headers with the same names and lengths. */
export async function requireSameAnswer(server: Server, probe: Probe, expected: CapturedAnswer): Promise<void> {
  const [text, expectedText] = [await capture(server, probe), expected].map(({ status, headers, body }) =>
    [status, ...Object.entries(headers).map(([name, value]) => `${name}: ${value.length} characters`), body].join('\n'),
  )
  if (text !== expectedText) throw new Error(`${server.name} answers\n${text}\nand not\n${expectedText}`)
}
