import { describe, expect, test } from 'bun:test'
import { post } from './support/answers.ts'
import { type RequestOptions, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const MAX_BODY_BYTES = 200
const TOO_LARGE = ' '.repeat(MAX_BODY_BYTES + 1)
const NOT_JSON = '{"id":"5"'
const INVALID = '{"id":"5","name":1}'

/** A request that two checks would refuse, and the code of the first check; 204 is the answer to OPTIONS. */
type Row = readonly [name: string, method: string, path: string, options: RequestOptions, wins: number]

/** Every pair of neighbours in the contract's order that one request can violate together. */
const rows = (readToken: string, blockedToken: string): readonly Row[] => {
  const reader = { token: readToken }
  /** No token, a malformed one, and one of a blocked user that may only read: 401 also comes before 403. */
  const unauthorized = [
    [null, 40101],
    ['nobody', 40102],
    [blockedToken, 40102],
  ] as const
  const encoded = (text: string) => post(text, { 'content-encoding': 'gzip' })
  return [
    ['404 before OPTIONS', 'OPTIONS', '/nothing', {}, 40401],
    ['404 before 405', 'PUT', '/nothing', {}, 40401],
    ['404 before 413', 'POST', '/nothing', post(TOO_LARGE), 40401],
    ['OPTIONS before 40003', 'OPTIONS', '/plants?limit=x', {}, 204],
    ['OPTIONS before 40004', 'OPTIONS', '/plants/x', {}, 204],
    ['405 before 403', 'PUT', '/plants/1', reader, 40501],
    ['405 before 40004', 'PUT', '/plants/x', {}, 40501],
    ['405 before 413', 'PUT', '/plants', post(TOO_LARGE), 40501],
    ...unauthorized.flatMap(([token, code]): Row[] => [
      [`404 before ${code}`, 'GET', '/nothing', { token }, 40401],
      [`OPTIONS before ${code}`, 'OPTIONS', '/plants', { token }, 204],
      [`405 before ${code}`, 'PUT', '/plants', { token }, 40501],
      [`${code} before 40003`, 'GET', '/plants?limit=x', { token }, code],
      [`${code} before 40004`, 'DELETE', '/plants/x', { token }, code],
      [`${code} before 40402`, 'DELETE', '/plants/7', { token }, code],
      [`${code} before 415`, 'POST', '/plants', { token, body: 'x' }, code],
      [`${code} before 413`, 'POST', '/plants', { token, ...post(TOO_LARGE) }, code],
      [`${code} before 40001`, 'POST', '/plants', { token, ...post(NOT_JSON) }, code],
    ]),
    ['403 before 40004', 'DELETE', '/plants/x', reader, 40301],
    ['403 before 40402', 'DELETE', '/plants/7', reader, 40301],
    ['403 before 415', 'POST', '/plants', { ...reader, body: '{}' }, 40301],
    ['403 before 413', 'POST', '/plants', { ...reader, ...post(TOO_LARGE) }, 40301],
    ['403 before 40001', 'POST', '/plants', { ...reader, ...post(NOT_JSON) }, 40301],
    ['40004 before 413, which a DELETE does not have', 'DELETE', '/plants/x', post(TOO_LARGE), 40004],
    ['41501 before 413', 'POST', '/plants', { body: TOO_LARGE }, 41501],
    ['41501 before 41502', 'POST', '/plants', { headers: { 'content-encoding': 'gzip' }, body: '{}' }, 41501],
    ['41501 before 40001', 'POST', '/plants', { headers: { 'content-type': 'text/plain' }, body: NOT_JSON }, 41501],
    ['41502 before 413', 'POST', '/plants', encoded(TOO_LARGE), 41502],
    ['41502 before 40001', 'POST', '/plants', encoded(NOT_JSON), 41502],
    ['413 before 40001', 'POST', '/plants', post(`${NOT_JSON}${TOO_LARGE}`), 41301],
    ['413 before 40002', 'POST', '/plants', post(`${INVALID}${TOO_LARGE}`), 41301],
    ['40001 before 40002', 'POST', '/plants', post(NOT_JSON), 40001],
    ['40001 before 40002, nested', 'POST', '/plants', post(`{"id":"5","x":${'['.repeat(64)}${']'.repeat(64)}}`), 40001],
    ['40002 before 409', 'POST', '/plants', post('{"id":1,"name":2}'), 40002],
    ['40001 before 40302', 'POST', '/plants', post('{"id":2,'), 40001],
    ['40002 before 40302', 'POST', '/plants', post('{"id":2,"name":2}'), 40002],
    ['409 before 40302', 'POST', '/plants', post('{"id":1,"name":"Ivy"}'), 40901],
  ]
}

describe.each(TRANSPORTS)('the order of checks, $name', (transport) => {
  test('lets the first check win wherever two would refuse', async () => {
    await using service = await startService(transport, { maxBodyBytes: MAX_BODY_BYTES, quotaPlants: 1 })
    const { text: readToken } = await service.createToken({ scope: 'read' })
    const { text: blockedToken } = await service.createToken({ user: 'blocked', scope: 'read' })
    await service.store.setUserBlock('blocked', Date.now())
    await service.create({ id: 1, name: 'Fern' })

    for (const [name, method, path, options, wins] of rows(readToken, blockedToken)) {
      const { status, body } = await service.request(method, path, options)
      expect([name, options.token, body?.error ?? status]).toEqual([name, options.token, wins])
    }
    expect(await service.names()).toEqual(['Fern'])
  })
})
