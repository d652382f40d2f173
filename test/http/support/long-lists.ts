import type { Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { createApp } from '../../../src/http/app.ts'
import { PAGE_PLANTS } from '../../../src/http/list.ts'
import { listen } from '../../../src/http/server.ts'
import { createLogger } from '../../../src/log.ts'
import { appOptions, LISTEN_OPTIONS } from '../../support/app.ts'
import { createToken } from '../../support/tokens.ts'

/** Two pages of the store and one plant more. */
export const MANY = 2 * PAGE_PLANTS + 1
/** With what a page fails. */
export const FAULT = new Error('a page that cannot be read')

/** Creates the plant with this even id, counted from 0. Returns its name. */
export async function createEven(store: Store, user: UserId, index: number): Promise<string> {
  await store.createPlant(user, { id: BigInt(2 * index), name: String(2 * index) })
  return String(2 * index)
}

/** Creates plants with even ids, on three pages. Returns their names in the order of their ids. */
export async function createMany(store: Store, user: UserId): Promise<string[]> {
  // All at once, so that the store commits them together.
  return Promise.all(Array.from({ length: MANY }, (_, index) => createEven(store, user, index)))
}

/** The id of a user that has a token. */
export async function userIdOf(store: Store, userName: string): Promise<UserId> {
  const [token] = await store.listTokens(userName)
  if (token === undefined) throw new Error(`user ${userName} has no token`)
  return token.userId
}

/** Creates user `me` with a read token. */
export async function createUser(store: Store): Promise<{ user: UserId; token: string }> {
  const { text } = await createToken(store, { scope: 'read' })
  return { user: await userIdOf(store, 'me'), token: text }
}

/** The app on a store, without a server. */
export const appOf = (store: Store, write = (_line: string) => {}) =>
  createApp(appOptions({ store, log: createLogger('error', { write }), servesDocs: false }))

/** The app behind a server, with all that it logs. */
export async function serveApp(store: Store) {
  let lines = ''
  const app = appOf(store, (line) => {
    lines += line
  })
  const server = await listen({ host: '127.0.0.1', port: 0 }, app, LISTEN_OPTIONS)
  if (!('port' in server.address)) throw new Error('the server has no port')
  return { port: server.address.port, logs: () => lines, [Symbol.asyncDispose]: async () => void server.kill() }
}

/** The real store, but for one page, counted from 1, that fails when `ready` has been waited for. */
export function failingOn(page: number, store: Store, ready = async () => {}) {
  let calls = 0
  const listPlants: Store['listPlants'] = async (...asked) => {
    calls++
    if (calls !== page) return store.listPlants(...asked)
    await ready()
    throw FAULT
  }
  return { store: { ...store, listPlants }, calls: () => calls }
}

/** The header that carries a token. */
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** The bytes of a request for the list, after which the connection ends. */
export const get = (token: string, version = '1.1') =>
  `GET /plants HTTP/${version}\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`

/** A request for the list, as the app without a server takes it. */
export const listRequest = (token: string, { method = 'GET', query = '' } = {}) =>
  new Request(`http://localhost/plants${query}`, { method, headers: bearer(token) })
