import { describe, expect, test } from 'bun:test'
import { storedPlants } from '../support/stored.ts'
import { type Answer, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

/** Far more than an answer takes on a slow machine, and far less than quadratic time or writing out such a number takes. */
const QUICKLY_MS = 2000
const HARD_BODY_BYTES = 256 * 1024

describe.each(TRANSPORTS)('createPlant, $name', (transport) => {
  test('has the plant in the database, and nothing else, when it answers', async () => {
    await using service = await startService(transport)

    await service.create({ id: 1, name: 'Fern', colour: 'green' })
    expect(await storedPlants(service.database)).toEqual([{ user_id: 1n, id: 1n, name: 'Fern' }])

    await service.create({ id: 2, name: 'Ivy', tag: '' })
    expect(await storedPlants(service.database)).toEqual([
      { user_id: 1n, id: 1n, name: 'Fern' },
      { user_id: 1n, id: 2n, name: 'Ivy', tag: '' },
    ])
  })

  test('refuses an id that the user already has, and keeps the first plant', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern', tag: 'shade' })

    const again = [
      await service.create({ id: 1, name: 'Ivy', tag: 'climber' }),
      await service.create({ id: 1, name: 'Fern', tag: 'shade' }),
    ]

    // A client that repeats a create because the answer was lost must not be told to delete the plant.
    const message =
      'You have a plant with this id already, and nothing was changed: GET /plants/{id} shows the stored plant.'
    expect(again.map(refusal)).toEqual(Array(2).fill({ status: 409, body: { error: 40901, message } }))
    expect((await service.list()).text).toBe('[{"name":"Fern","tag":"shade"}]')
  })

  test('evaluates no precondition', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const preconditions = [{ 'if-none-match': '*' }, { 'if-match': '"x"' }]

    const answers: [number, number][] = []
    for (const [index, headers] of preconditions.entries()) {
      const created = await service.create({ id: index + 2, name: 'Ivy' }, { headers })
      const again = await service.create({ id: 1, name: 'Ivy' }, { headers })
      answers.push([created.status, again.body.error])
    }

    expect(answers).toEqual([
      [200, 40901],
      [200, 40901],
    ])
    expect(await service.names()).toEqual(['Fern', 'Ivy', 'Ivy'])
  })

  test('answers a body quickly, however hard it is to parse', async () => {
    await using service = await startService(transport, { maxBodyBytes: HARD_BODY_BYTES })
    const digits = '9'.repeat(60_000)
    const numbers = [`1e${digits}`, `1e+${digits}`, `-1e${digits}`, `1e-${digits}`, '1e999999999', digits]
    const filled = (before: string, unit: string, after: string) =>
      before + unit.repeat((HARD_BODY_BYTES - before.length - after.length) / unit.length) + after
    const bodies: readonly (readonly [body: string, status: number])[] = [
      ...numbers.map((number) => [`{"id":${number},"name":"Fern"}`, 400] as const),
      [filled('', '[', ''), 400],
      [filled('', '{"x":', ''), 400],
      [filled('{"id":1,"name":"Fern","x":[', `${'['.repeat(62)}${']'.repeat(62)},`, '0]}'), 200],
      [filled('{"id":2.0,"name":"Fern","x":[', '{"id":1.5},', '0]}'), 200],
      [filled('{', '"id":1.5,', '"id":3,"name":"Fern"}'), 200],
      [filled('{"id":4,"name":"', '\\ud83c\\udf31', '"}'), 200],
      [filled('{"id":5,"name":"', '\\n', ''), 400],
    ]

    for (const [body, status] of bodies) {
      const startedMs = performance.now()
      const answer = await service.create(body)
      expect([body.slice(0, 40), answer.status]).toEqual([body.slice(0, 40), status])
      expect(performance.now() - startedMs).toBeLessThan(QUICKLY_MS)
    }
  })
})

const refusal = ({ status, body }: Answer) => ({ status, body })
