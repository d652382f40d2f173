import { describe, expect, test } from 'bun:test'
import { type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const LIMIT_BYTES = 1000
const DEFAULT_LIMIT_BYTES = 64 * 1024
const REFUSAL = { error: 41301, message: expect.stringMatching(/larger/) }

const nameOf = (bytes: number, id = 1) => 'x'.repeat(bytes - `{"id":${id},"name":""}`.length)
/** A plant whose body has that many bytes. */
const plantOf = (bytes: number, id = 1) => `{"id":${id},"name":"${nameOf(bytes, id)}"}`

/** The status and the body of a create. */
async function create(service: Service, plant: string) {
  const { status, body } = await service.create(plant)
  return [status, body]
}

describe.each(TRANSPORTS)('a body, $name', (transport) => {
  test.each([
    ['--max-body', LIMIT_BYTES, { maxBodyBytes: LIMIT_BYTES }],
    ['64 KiB by default', DEFAULT_LIMIT_BYTES, {}],
  ])('is taken if it is as long as the limit, and refused if it is a byte longer: %s', async (_, bytes, options) => {
    await using service = await startService(transport, options)

    expect(await create(service, plantOf(bytes))).toEqual([200, { name: nameOf(bytes) }])
    expect(await create(service, plantOf(bytes + 1, 2))).toEqual([413, REFUSAL])
    expect(await service.names()).toEqual([nameOf(bytes)])
  })

  test('is measured in bytes and not in characters', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const name = `xx${'🌿'.repeat(245)}`
    const body = `{"id":1,"name":"${name}"}`
    expect(Buffer.byteLength(body)).toBe(LIMIT_BYTES)

    expect(await create(service, `${body} `)).toEqual([413, REFUSAL])
    expect(await create(service, body)).toEqual([200, { name }])
  })

  test('is refused if white space, ignored properties or text that is not JSON make it too long', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const plant = '{"id":1,"name":"Fern"}'

    for (const body of [
      plant.padEnd(LIMIT_BYTES + 1),
      plant.padStart(LIMIT_BYTES + 1),
      `{"x":"${'x'.repeat(LIMIT_BYTES)}",${plant.slice(1)}`,
      '['.repeat(LIMIT_BYTES + 1),
      '\0'.repeat(100 * LIMIT_BYTES),
    ]) {
      expect(await create(service, body)).toEqual([413, REFUSAL])
    }
    expect(await create(service, plant)).toEqual([200, { name: 'Fern' }])
  })
})
