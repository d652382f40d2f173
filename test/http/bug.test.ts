import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { AppError } from '../../src/domain/error.ts'
import type { Store } from '../../src/domain/store.ts'
import { hashToken } from '../../src/domain/token.ts'
import { PAGE_PLANTS } from '../../src/http/list.ts'
import { openStore } from '../../src/store/open.ts'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createToken } from '../support/tokens.ts'
import { TRANSPORTS, type Transport } from './support/service.ts'

const SECRETS = 'secret /var/lib/plants select name from plants where id = 7'
const REQUEST_ID = 'request-of-the-test'

/** Whatever a bug may throw; some of it is made so that a framework takes it for an answer. */
const THROWN: Readonly<Record<string, unknown>> = {
  'an error': new Error(SECRETS),
  'a type error': new TypeError(SECRETS, { cause: new Error(SECRETS) }),
  "an error with the framework's code for an unknown path": Object.assign(new Error(SECRETS), { code: 'NOT_FOUND' }),
  "an error with the framework's code for validation": Object.assign(new Error(SECRETS), { code: 'VALIDATION' }),
  "an error with the framework's code for parsing": Object.assign(new Error(SECRETS), { code: 'PARSE' }),
  'an error with a status': Object.assign(new Error(SECRETS), { status: 418 }),
  'an error that offers an answer': Object.assign(new Error(SECRETS), { toResponse: () => new Response(SECRETS) }),
  'an error of SQLite that means a bug': Object.assign(new Error(SECRETS), { code: 'SQLITE_ERROR' }),
  'an error that is no answer over HTTP': new AppError('store_unusable', { message: SECRETS }),
  'an answer': new Response(SECRETS, { status: 200, headers: { 'x-secret': SECRETS } }),
  'a string': SECRETS,
  nothing: undefined,
  'an object': { message: SECRETS, status: 200 },
}

/** A service on a real store, of which some methods have a bug. */
async function startWithBug(transport: Transport, bugsOf: (store: Store) => Partial<Store>, plants = 1) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const store = await openStore(database, () => {})
  const { text: token } = await createToken(store)
  const { userId = 0 } = (await store.findToken(hashToken(token))) ?? {}
  for (let id = 1n; id <= plants; id++) await store.createPlant(userId, { id, name: 'Fern' })
  const service = await transport.start({ ...store, ...bugsOf(store) }, database, {})
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': REQUEST_ID, 'content-type': 'application/json' }
  return {
    logs: service.logs,
    request: (method: string, path: string, body?: string) =>
      service.fetch(path, { method, headers, ...(body !== undefined && { body }) }),
    async [Symbol.asyncDispose]() {
      await service.stop()
      await store.close()
      folder[Symbol.dispose]()
    },
  }
}

const throwing = (thrown: unknown) => async () => {
  throw thrown
}

/** Each method that a request reaches, and a request that does. */
const REACHED: Readonly<Record<string, readonly [method: string, path: string, body?: string]>> = {
  createPlant: ['POST', '/plants', '{"id":7777,"name":"Ivy"}'],
  listPlants: ['GET', '/plants'],
  deletePlant: ['DELETE', '/plants/1'],
  findToken: ['GET', '/plants?limit=1'],
  checkReady: ['GET', '/readyz'],
}

const expectBugAnswer = async (response: Response) => {
  const { date: _, 'content-length': __, ...headers } = Object.fromEntries(response.headers)
  expect({ status: response.status, headers, body: await response.json() }).toEqual({
    status: 500,
    headers: {
      'content-type': 'application/json',
      'x-request-id': REQUEST_ID,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    },
    body: { error: 50000, message: `The server has a bug. Tell its operator the request id ${REQUEST_ID}.` },
  })
}

// Nobody can plant a bug in the executable.
describe.skipIf(EXECUTABLE !== undefined).each(TRANSPORTS)('a bug, $name', (transport) => {
  test.each(Object.entries(REACHED))(
    'in %s is answered with a fixed sentence and told in full to the log',
    async (method, request) => {
      await using service = await startWithBug(transport, () => ({ [method]: throwing(new Error(SECRETS)) }))

      await expectBugAnswer(await service.request(...request))

      const lines = service
        .logs()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(lines).toContainEqual(
        expect.objectContaining({
          level: 'error',
          requestId: REQUEST_ID,
          err: expect.objectContaining({ message: SECRETS, stack: expect.stringContaining('bug.test.ts') }),
        }),
      )
      expect(lines).toContainEqual(expect.objectContaining({ level: 'info', requestId: REQUEST_ID, status: 500 }))
    },
  )

  test('is told from every answer, whatever is thrown', async () => {
    for (const [name, thrown] of Object.entries(THROWN)) {
      await using service = await startWithBug(transport, () => ({ deletePlant: throwing(thrown) }))

      const response = await service.request('DELETE', '/plants/1')

      expect([name, response.status]).toEqual([name, 500])
      await expectBugAnswer(response)
    }
  })

  test('does not end the service', async () => {
    await using service = await startWithBug(transport, () => ({ createPlant: throwing(new Error(SECRETS)) }))

    for (let i = 0; i < 3; i++)
      expect((await service.request('POST', '/plants', '{"id":7777,"name":"Ivy"}')).status).toBe(500)

    expect(await (await service.request('GET', '/plants?limit=1')).json()).toEqual([{ name: 'Fern' }])
  })

  test('in the middle of a streamed list cuts it, and the log knows', async () => {
    await using service = await startWithBug(
      transport,
      (store) => ({
        listPlants: async (user, page) => {
          if (page.after !== undefined) throw new Error(SECRETS)
          return store.listPlants(user, page)
        },
      }),
      PAGE_PLANTS + 1,
    )

    const answer = service.request('GET', '/plants').then((response) => response.text())

    expect(
      await answer.then(
        () => 'ended well',
        () => 'cut',
      ),
    ).toBe('cut')
    const lines = service
      .logs()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        requestId: REQUEST_ID,
        err: expect.objectContaining({ message: SECRETS }),
      }),
    )
  })
})
