import { expect } from 'bun:test'
import type { Answer, RequestOptions, Service } from './service.ts'

/** A request, and the code of its error, or its status where it has none. */
export type Row = readonly [method: string, path: string, options: RequestOptions, code: number]

/** Sends requests one after the other, and expects each code. */
export async function expectCodes(service: Service, rows: readonly Row[]): Promise<void> {
  for (const [method, path, options, code] of rows) {
    const { status, body } = await service.request(method, path, options)
    expect([method, path, body?.error ?? status]).toEqual([method, path, code])
  }
}

/** A body of JSON, as far as its headers say. */
export const post = (body: string, headers: Record<string, string> = {}): RequestOptions => ({
  headers: { 'content-type': 'application/json', ...headers },
  body,
})

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
