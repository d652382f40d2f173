import { describe, expect, test } from 'bun:test'
import type { Store } from '../../src/domain/store.ts'
import { AppError } from '../../src/error.ts'
import { post } from './support/answers.ts'
import { expectDescribed } from './support/described.ts'
import { type Answer, type RequestOptions, startService } from './support/service.ts'
import { IN_PROCESS, type Transport } from './support/transports.ts'

const SECRETS = 'secret /var/lib/plants select name from plants where id = 7'
const REQUEST_ID = 'request-of-the-test'

/** Values that a bug may throw. A framework may take some of them for an answer. */
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

const OWN_ID = { headers: { 'x-request-id': REQUEST_ID } }

/** A request to each method of the store that a request reaches. */
const REQUESTS: readonly (readonly [storeMethod: keyof Store, method: string, path: string, RequestOptions?])[] = [
  ['createPlant', 'POST', '/plants', post('{"id":2,"name":"Ivy"}', OWN_ID.headers)],
  ['putPlant', 'PUT', '/plants/2', post('{"name":"Ivy"}', OWN_ID.headers)],
  ['listPlants', 'GET', '/plants'],
  ['getPlant', 'GET', '/plants/1'],
  ['deletePlant', 'DELETE', '/plants/1'],
  ['findToken', 'GET', '/plants?limit=1'],
  ['checkReady', 'GET', '/readyz'],
]

const ANSWER = {
  status: 500,
  headers: {
    'content-type': 'application/json',
    'x-request-id': REQUEST_ID,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  },
  body: { error: 50000, message: `The server has a bug. Tell its operator the request id ${REQUEST_ID}.` },
}

const seen = ({ status, headers, body }: Answer) => ({ status, headers: Object.fromEntries(headers), body })

const startWithBug = (transport: Transport, storeMethod: string, thrown: unknown) =>
  startService(transport, { overrideStore: () => ({ [storeMethod]: async () => Promise.reject(thrown) }) })

describe.each(IN_PROCESS)('a bug, $name', (transport) => {
  test.each(REQUESTS)(
    'in %s is answered with a fixed sentence, and the log has all of the error',
    async (name, method, path, options = OWN_ID) => {
      await using service = await startWithBug(transport, name, new Error(SECRETS))

      const answer = await service.request(method, path, options)

      expect(seen(answer)).toEqual(ANSWER)
      if (name !== 'checkReady') expectDescribed(method, path, answer)
      expect(service.logLines()).toEqual([
        expect.objectContaining({
          level: 'error',
          requestId: REQUEST_ID,
          err: expect.objectContaining({ message: SECRETS, stack: expect.stringContaining('bug.test.ts') }),
        }),
        expect.objectContaining({ level: 'info', requestId: REQUEST_ID, status: 500 }),
      ])
    },
  )

  test.each(Object.entries(THROWN))('that throws %s is answered with the same sentence', async (_, thrown) => {
    await using service = await startWithBug(transport, 'deletePlant', thrown)

    expect(seen(await service.delete(1, OWN_ID))).toEqual(ANSWER)
  })
})
