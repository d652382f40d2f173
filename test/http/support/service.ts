import { readCertificate } from '../../../src/cli/serve/tls.ts'
import type { Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { closeNow } from '../../store/fixtures.ts'
import { exchange, formatRequest, openConnection } from '../../support/raw-connection.ts'
import { createToken, type TokenOptions } from '../../support/tokens.ts'
import { openDatabase, type ServiceOptions, type Transport } from './transports.ts'

/** An answer with its body as text and, where it has one, as JSON. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests compare it as a whole
  readonly body: any
}

/** All that a client sees of an answer without the request's id and the time. */
export function bytesOf({ status, headers, text }: Answer): string {
  const lines = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date')
  return JSON.stringify({ status, lines, text })
}

export interface RequestOptions {
  /** The write token of user `me` if left out; `null` sends no `Authorization`. */
  readonly token?: string | null
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream
}

/** A service on an empty store, with a write token of user `me`. */
export async function startService(transport: Transport, options: ServiceOptions = {}) {
  const opened = await (transport.open ?? openDatabase)({
    quotaPlants: options.quotaPlants,
    ...(options.storeDeadlines && { deadlines: options.storeDeadlines }),
  })
  const { database, reopen } = opened
  let { store } = opened
  let reachable = await transport.start(store, database, options)

  const { text: ownToken } = await createToken(store)
  const at = () => options.socketPath ?? reachable.port ?? 0
  const trusted = { ca: options.tls && readCertificate(options.tls.certPath).cert }

  const request = async (
    method: string,
    path: string,
    { token = ownToken, headers = {}, body }: RequestOptions = {},
  ) => {
    const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
    const response = await reachable.fetch(path, {
      method,
      headers: { ...authorization, ...headers },
      ...(body !== undefined && { body }),
    })
    return toAnswer(response)
  }

  return {
    /** The write token of user `me`. */
    token: ownToken,
    /** What `--database` names. */
    database,
    /** The store behind the service, for what administrators do. The executable has the same file open by itself. */
    get store() {
      return store
    },
    /** Opens the same store once more, as another process does. */
    reopen,
    /** Ends the service, the executable by SIGKILL, and starts it again on the same database. */
    async restart() {
      await reachable.stop()
      await closeNow(store)
      store = await reopen()
      reachable = await transport.start(store, database, options)
    },
    port: reachable.port ?? 0,
    logs: () => reachable.logs(),
    /** The answer to a request of user `me` before its body is read. */
    fetch: (path: string) => reachable.fetch(path, { headers: { authorization: `Bearer ${ownToken}` } }),
    /** The lines that were logged so far. */
    logLines: (): LogLine[] =>
      reachable
        .logs()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    userIdOf: (user: string) => userIdOf(store, user),
    createToken: (token?: TokenOptions) => createToken(store, token),
    request,
    /** Opens a connection for bytes as they are. */
    connect: () => openConnection(at(), trusted),
    /** Sends a request on a connection of its own, which it asks to close. */
    exchange: (method: string, target: string, body?: string) =>
      exchange(at(), formatRequest(method, target, ownToken, body, CLOSE), trusted),
    /** Sends a plant; a string is sent as it is. */
    create: (plant: object | string, options: RequestOptions = {}) =>
      request('POST', '/plants', {
        ...options,
        headers: { 'content-type': 'application/json', ...options.headers },
        body: typeof plant === 'string' ? plant : JSON.stringify(plant),
      }),
    /** Puts a plant, as `create`. */
    put: (id: number | bigint, plant: object | string, options: RequestOptions = {}) =>
      request('PUT', `/plants/${id}`, {
        ...options,
        headers: { 'content-type': 'application/json', ...options.headers },
        body: typeof plant === 'string' ? plant : JSON.stringify(plant),
      }),
    list: (query = '', options: RequestOptions = {}) => request('GET', `/plants${query}`, options),
    /** Sends `GET /plants/{id}`. The id may be followed by a query. */
    get: (id: string | number | bigint, options: RequestOptions = {}) => request('GET', `/plants/${id}`, options),
    delete: (id: string | number | bigint, options: RequestOptions = {}) => request('DELETE', `/plants/${id}`, options),
    /** The names of all plants that the token sees. */
    async names(token = ownToken): Promise<string[]> {
      const { body } = await request('GET', '/plants', { token })
      return body.map((plant: { name: string }) => plant.name)
    },
    async [Symbol.asyncDispose]() {
      await reachable.stop()
      await opened[Symbol.asyncDispose]()
    },
  }
}

const CLOSE = 'Connection: close\r\n'

/** A list as it is sent on a connection of its own. */
export const listRequest = (token: string) => formatRequest('GET', '/plants', token, undefined, CLOSE)

/** The id of a user that has a token. */
export async function userIdOf(store: Store, userName: string): Promise<UserId> {
  const [token] = await store.listTokens({ userName })
  if (token === undefined) throw new Error(`user ${userName} has no token`)
  return token.userId
}

// biome-ignore lint/suspicious/noExplicitAny: tests compare what they look for
type LogLine = Readonly<Record<string, any>>

export type Service = Awaited<ReturnType<typeof startService>>

async function toAnswer(response: Response): Promise<Answer> {
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson && text !== '' ? JSON.parse(text) : undefined,
  }
}
