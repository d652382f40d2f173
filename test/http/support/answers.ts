import { expect } from 'bun:test'
import type { Answer, RequestOptions, Service } from './service.ts'

/** A request, and the code of its error, or its status where it has none. */
export type Row = readonly [method: string, path: string, options: RequestOptions, code: number]

/** A body of JSON, as far as its headers say. */
export const post = (body: string, headers: Record<string, string> = {}): RequestOptions => ({
  headers: { 'content-type': 'application/json', ...headers },
  body,
})

/** Sends requests one after the other, and expects each code. */
export async function expectCodes(service: Service, rows: readonly Row[]): Promise<void> {
  for (const [method, path, options, code] of rows) {
    const { status, body } = await service.request(method, path, options)
    expect([method, path, body?.error ?? status]).toEqual([method, path, code])
  }
}

/** Requests that are answered before a token is looked at, or because it is missing or invalid. */
export const ANSWERED_BEFORE_TOKENS: readonly Row[] = [
  ['GET', '/healthz', {}, 200],
  ['GET', '/openapi.json', {}, 200],
  ['OPTIONS', '/plants', {}, 204],
  ['GET', '/nothing', {}, 40401],
  ['PUT', '/plants', {}, 40501],
  ['GET', '/plants', { token: null }, 40101],
  ['GET', '/plants', { token: 'nobody' }, 40102],
]

/** Requests that are refused for what they are, if `maxBody` is 100. */
export const REFUSED_BY_THEMSELVES: readonly Row[] = [
  ['GET', '/plants?limit=x', {}, 40003],
  ['DELETE', '/plants/x', {}, 40004],
  ['POST', '/plants', { body: '{}' }, 41501],
  ['POST', '/plants', post(' '.repeat(101)), 41301],
  ['POST', '/plants', post('{'), 40001],
  ['POST', '/plants', post('[]'), 40002],
  ['PUT', '/plants/x', post('{}'), 40004],
  ['PUT', '/plants/1', post('{}', { 'content-range': 'bytes 0-1/2' }), 40006],
  ['PUT', '/plants/1', { body: '{}' }, 41501],
  ['PUT', '/plants/1', post(' '.repeat(101)), 41301],
  ['PUT', '/plants/1', post('{'), 40001],
  ['PUT', '/plants/1', post('{"id":2,"name":"Ivy"}'), 40002],
]

/** The parts of an answer that `unavailable` and its like are compared with. */
export const seen = ({ status, headers, body }: Answer) => ({ status, retryAfter: headers.get('retry-after'), body })

/** The answer of a service that cannot serve for a while. */
export const unavailable = (error: number, message: string) => ({
  status: 503,
  retryAfter: '1',
  body: { error, message },
})

export const BUSY = unavailable(
  50303,
  'The server is too busy or shutting down, nothing was and nothing will be stored: try again.',
)
