import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { COMPILED, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { CPU_TIME, cpuMsOf } from './cpu-time.ts'

/** A body may take this many times the CPU time of a plain name of its length. A quadratic parser takes thousands. */
const PLAIN_FACTOR_MAX = 10
/** The lowest time counts: other work of the machine only adds. */
const REPETITIONS = 5
const KEYS = 10_000
const DEFAULT_LIMIT_BYTES = 64 * 1024

const LIMITS = [
  { name: '--max-body 2MiB', limitBytes: 2 * 1024 ** 2, flags: ['--max-body', '2MiB'] },
  { name: 'the default limit', limitBytes: DEFAULT_LIMIT_BYTES, flags: [] },
]

/** A text that is repeated as often as it fits between two others. */
interface Repeated {
  readonly before: string
  readonly unit: string
  readonly after: string
}

const repeated = (before: string, unit: string, after: string): Repeated => ({ before, unit, after })
const value = (unit: string, end = ''): Repeated => repeated('{"id":1,"name":"Fern","x":[', unit, `${end}]}`)
const number = (before: string, unit: string, after = ''): Repeated =>
  repeated(`{"id":${before}`, unit, `${after},"name":"Fern"}`)
const text = (unit: string): Repeated => repeated('{"id":1,"name":"', unit, '"}')

/** Bodies that are hard to parse, each made as long as the limit allows, and the status of each answer. */
const BODIES: Readonly<Record<string, readonly [status: number, body: Repeated]>> = {
  'arrays in arrays': [400, repeated('', '[', '')],
  'objects in objects': [400, repeated('', '{"x":', '')],
  'all levels that there may be, over and over': [200, value(`${'['.repeat(62)}${']'.repeat(62)},`, '0')],
  'empty objects': [200, value('{},', '0')],
  'objects with an id, beside an id with a point': [
    200,
    repeated('{"id":1.0,"name":"Fern","x":[', '{"id":1.5},', '0]}'),
  ],
  'digits for an id': [400, number('', '9')],
  'digits behind the point of an id': [400, number('1.', '9')],
  'zeros of an id and its exponent': [400, number('1', '0', 'e-9')],
  'zeros before the last digit of an id': [400, number('0.', '0', '1')],
  'digits of an exponent': [400, number('1e', '9')],
  'one id over and over': [200, repeated('{', '"id":1.5,', '"id":1,"name":"Fern"}')],
  'escapes in a name': [200, text('\\u0041')],
  'escaped surrogates in a name': [200, text('\\ud83c\\udf31')],
  'escaped lone surrogates in a name': [400, text('\\ud83c')],
  'escapes that nobody asked for': [200, repeated('{"id":1,"name":"Fern","x":"', '\\\\', '"}')],
  'escapes without an end': [400, repeated('{"id":1,"name":"', '\\n', '')],
}

/** The body that is as long as it may be. */
const atLimit = ({ before, unit, after }: Repeated, limitBytes: number): string => {
  const room = limitBytes - before.length - after.length
  return before + unit.repeat(Math.floor(room / unit.length)) + ' '.repeat(room % unit.length) + after
}

/** A plant among many properties; as many of them as fit. */
function withKeys(id: string, limitBytes: number, nameOf: (index: number) => string): string {
  const rest = `"id":${id},"name":"Fern"}`
  let body = '{'
  for (let index = 0; index < KEYS; index++) {
    const member = `"${nameOf(index)}":${index % 10},`
    if (body.length + member.length + rest.length > limitBytes) break
    body += member
  }
  return body + rest
}

const PLAIN = 'a plain name'

describe.skipIf(lacks(COMPILED, CPU_TIME))('the CPU time of a request', () => {
  test.each(LIMITS)('depends on the length of a body and hardly on what is in it, $name', async (limit) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database, limit.flags)
    const send = (body: string) => server.request('POST', '/plants', { token, body })
    const bodies: Record<string, readonly [status: number, body: string]> = {
      [PLAIN]: [200, atLimit(text('x'), limit.limitBytes)],
      ...Object.fromEntries(
        Object.entries(BODIES).map(([name, [status, body]]) => [name, [status, atLimit(body, limit.limitBytes)]]),
      ),
      '10 000 keys': [200, withKeys('1', limit.limitBytes, (index) => index.toString(36))],
      '10 000 keys beside an id with a point': [200, withKeys('1.0', limit.limitBytes, (index) => index.toString(36))],
      '1e and thousands of digits': [400, `{"id":1e${'9'.repeat(5000)},"name":"Fern"}`],
    }
    // The first create also does what a server does once.
    await send('{"id":1,"name":"Fern"}')
    await server.request('DELETE', '/plants/1', { token })

    const measured = new Map<string, number>()
    for (const [name, [status, body]] of Object.entries(bodies)) {
      const cpuMs: number[] = []
      while (cpuMs.length < REPETITIONS) {
        const beforeMs = cpuMsOf(server.pid)
        const answer = await send(body)
        await answer.arrayBuffer()
        cpuMs.push(cpuMsOf(server.pid) - beforeMs)
        expect([name, answer.status]).toEqual([name, status])
        if (status === 200) await server.request('DELETE', '/plants/1', { token })
      }
      measured.set(name, Math.min(...cpuMs))
    }

    const [[slowest, slowestMs] = ['', 0]] = [...measured].sort(([, one], [, other]) => other - one)
    const plainMs = measured.get(PLAIN) ?? 0
    console.log(`${limit.name}: ${plainMs.toFixed(1)} ms for ${PLAIN}, at most ${slowestMs.toFixed(1)} ms (${slowest})`)
    expect(plainMs).toBeGreaterThan(0)
    expect([...measured].filter(([, cpuMs]) => cpuMs > PLAIN_FACTOR_MAX * plainMs)).toEqual([])
  })
})
