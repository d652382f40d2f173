import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { queryAll, WAL } from '../store/sqlite/files.ts'
import { type Service, startService } from './support/service.ts'
import { OVER_TCP } from './support/transports.ts'

/** Far more than an answer takes on a slow machine, and far less than quadratic time or writing out such a number takes. */
const QUICKLY_MS = 2000
const HARD_BODY_BYTES = 256 * 1024

/** The id in a body, if it can be read. */
const ID = /"id":(\d)(?:\.0)?,"name"/

/** The ways in which the body of a plant reaches a server. What a create answers with 200, a put answers with 201. */
const WAYS = OVER_TCP.flatMap((transport) => [
  {
    transport,
    name: `createPlant, ${transport.name}`,
    stored: 200,
    store: (service: Service, body: string) => service.create(body),
  },
  {
    transport,
    name: `putPlant, ${transport.name}`,
    stored: 201,
    store: (service: Service, body: string) => service.put(Number(ID.exec(body)?.[1] ?? 1), body),
  },
])

describe.each(WAYS)('$name', ({ transport, stored: storedStatus, store }) => {
  test('has the plant in the database when it answers, and nothing of other properties, also not in the log', async () => {
    await using service = await startService(transport)
    const stored = () => queryAll(service.database, 'select user_id, id, name, tag from plants order by id')

    await store(service, '{"id":1,"name":"Fern","colour":"chartreuse","x":{"chartreuse":["chartreuse"]}}')
    expect(stored()).toEqual([[1n, 1n, 'Fern', null]])
    await store(service, '{"id":2,"name":"Ivy","tag":""}')
    expect(stored()[1]).toEqual([1n, 2n, 'Ivy', ''])

    const files = ['', WAL].map((end) => readFileSync(service.database + end, 'latin1')).join()
    expect(files).toContain('Fern')
    expect(files + service.logs()).not.toContain('chartreuse')
  })

  test('answers a body quickly, however hard it is to parse', async () => {
    await using service = await startService(transport, { maxBody: HARD_BODY_BYTES })
    const digits = '9'.repeat(60_000)
    const numbers = [`1e${digits}`, `1e+${digits}`, `-1e${digits}`, `1e-${digits}`, '1e999999999', digits]
    const filled = (before: string, unit: string, after: string) =>
      before + unit.repeat((HARD_BODY_BYTES - before.length - after.length) / unit.length) + after
    const bodies: readonly (readonly [body: string, status: number])[] = [
      ...numbers.map((number) => [`{"id":${number},"name":"Fern"}`, 400] as const),
      [filled('', '[', ''), 400],
      [filled('', '{"x":', ''), 400],
      [filled('{"id":1,"name":"Fern","x":[', `${'['.repeat(62)}${']'.repeat(62)},`, '0]}'), storedStatus],
      [filled('{"id":2.0,"name":"Fern","x":[', '{"id":1.5},', '0]}'), storedStatus],
      [filled('{', '"id":1.5,', '"id":3,"name":"Fern"}'), storedStatus],
      [filled('{"id":4,"name":"', '\\ud83c\\udf31', '"}'), storedStatus],
      [filled('{"id":5,"name":"', '\\n', ''), 400],
    ]

    for (const [body, status] of bodies) {
      const startedMs = performance.now()
      const answer = await store(service, body)
      expect([body.slice(0, 40), answer.status], answer.text).toEqual([body.slice(0, 40), status])
      expect(performance.now() - startedMs).toBeLessThan(QUICKLY_MS)
    }
  })
})
