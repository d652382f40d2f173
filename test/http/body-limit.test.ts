import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { type Service, SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

const LIMIT_BYTES = 1000
const DEFAULT_LIMIT_BYTES = 64 * 1024
const REFUSAL = { error: 41301, message: expect.stringMatching(/larger/) }

describe.each(TRANSPORTS)('the limit of a body, $name', (transport) => {
  test('takes a body at the limit and refuses one byte more', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })

    expect(await create(service, plantOf(LIMIT_BYTES))).toEqual([200, { name: nameOf(LIMIT_BYTES) }])
    expect(await create(service, plantOf(LIMIT_BYTES + 1, 2))).toEqual([413, REFUSAL])
    expect(await service.names()).toEqual([nameOf(LIMIT_BYTES)])
  })

  test('is 64 KiB where nothing else is said, and is the only limit of a name or tag', async () => {
    await using service = await startService(transport)

    expect(await create(service, plantOf(DEFAULT_LIMIT_BYTES))).toEqual([200, { name: nameOf(DEFAULT_LIMIT_BYTES) }])
    expect(await create(service, plantOf(DEFAULT_LIMIT_BYTES + 1, 2))).toEqual([413, REFUSAL])
    expect(await service.names()).toEqual([nameOf(DEFAULT_LIMIT_BYTES)])
  })

  test('counts bytes and not characters', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const name = `xx${'🌿'.repeat(245)}`
    const body = `{"id":1,"name":"${name}"}`
    expect(Buffer.byteLength(body)).toBe(LIMIT_BYTES)

    expect(await create(service, `${body} `)).toEqual([413, REFUSAL])
    expect(await create(service, body)).toEqual([200, { name }])
  })

  test('holds for white space and ignored properties, and for what is no JSON', async () => {
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
    expect(await service.names()).toEqual([])
  })

  test('holds for a body that comes as a stream', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const send = async (body: string) => {
      const answer = await service.request('POST', '/plants', {
        headers: { 'content-type': 'application/json' },
        body: streamOf(body),
      })
      return [answer.status, answer.body]
    }

    expect(await send(plantOf(LIMIT_BYTES))).toEqual([200, { name: nameOf(LIMIT_BYTES) }])
    expect(await send(plantOf(LIMIT_BYTES + 1, 2))).toEqual([413, REFUSAL])
    expect(await service.names()).toEqual([nameOf(LIMIT_BYTES)])
  })

  test('leaves the service as it was', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    for (let id = 0; id < 20; id++) await create(service, plantOf(10 * LIMIT_BYTES, id))

    expect(await create(service, plantOf(LIMIT_BYTES))).toEqual([200, { name: nameOf(LIMIT_BYTES) }])
  })
})

describe.each(SOCKET_TRANSPORTS)('the limit of a body on the wire, $name', (transport) => {
  test('refuses a Content-Length past the limit before the body comes', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })

    for (const length of [LIMIT_BYTES + 1, 2 ** 40]) {
      const answer = await exchange(service.port, `${head(service)}Content-Length: ${length}\r\n\r\n`)
      expect(summary(answer)).toEqual(REFUSED)
    }
  })

  test('refuses a chunked body as soon as it is past the limit, without waiting for its end', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const body = plantOf(LIMIT_BYTES + 1)

    for (const bytesPerChunk of [LIMIT_BYTES + 1, 600, 1]) {
      const answer = await exchange(service.port, `${chunkedHead(service)}${chunks(body, bytesPerChunk)}`)
      expect(summary(answer)).toEqual(REFUSED)
    }
    expect(await service.names()).toEqual([])
  })

  test('refuses a chunked body that is past the limit and complete', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const body = plantOf(LIMIT_BYTES + 1)

    const answer = await exchange(service.port, `${chunkedHead(service)}${chunks(body, 100)}0\r\n\r\n`)

    expect(summary(answer)).toEqual(REFUSED)
    expect(await service.names()).toEqual([])
  })

  test('takes a chunked body at the limit, however small its chunks are', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })

    for (const bytesPerChunk of [LIMIT_BYTES, 600, 1]) {
      const body = chunks(plantOf(LIMIT_BYTES, bytesPerChunk), bytesPerChunk)
      const answer = await exchange(service.port, `${chunkedHead(service)}${body}0\r\n\r\n`)
      expect([answer.status, answer.body]).toEqual([200, JSON.stringify({ name: nameOf(LIMIT_BYTES, bytesPerChunk) })])
    }
  })

  test('refuses a chunked body that never ends', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })

    const answer = await sendForever(service, `${chunkedHead(service)}`, chunks('x'.repeat(100), 100))

    expect(answer).toStartWith('HTTP/1.1 413 ')
    expect(answer).toContain('"error":41301')
  })
})

const REFUSED = { status: 413, type: 'application/json', body: REFUSAL }

const nameOf = (bytes: number, id = 1) => 'x'.repeat(bytes - `{"id":${id},"name":""}`.length)
/** A plant whose body has that many bytes; the smallest one where they are too few. */
const plantOf = (bytes: number, id = 1) => `{"id":${id},"name":"${bytes === 0 ? '' : nameOf(bytes, id)}"}`

async function create(service: Service, body: string) {
  const answer = await service.create(body)
  return [answer.status, answer.body]
}

const head = ({ token }: Service) =>
  `POST /plants HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n` +
  'Content-Type: application/json\r\n'
const chunkedHead = (service: Service) => `${head(service)}Transfer-Encoding: chunked\r\n\r\n`

/** A body in chunks (RFC 9112 §7.1), without the last one. */
const chunks = (body: string, bytesPerChunk: number) =>
  (body.match(new RegExp(`.{1,${bytesPerChunk}}`, 'g')) ?? [])
    .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    .join('')

const summary = ({ status, headers, body }: Awaited<ReturnType<typeof exchange>>) => ({
  status,
  type: headers.get('content-type'),
  body: JSON.parse(body),
})

function streamOf(text: string): ReadableStream {
  const parts = text.match(/.{1,100}/g) ?? []
  return new ReadableStream({
    pull(controller) {
      const part = parts.shift()
      if (part === undefined) controller.close()
      else controller.enqueue(new TextEncoder().encode(part))
    },
  })
}

/** Sends a head and then one part over and over, until the answer is there. */
async function sendForever({ port }: Service, start: string, part: string): Promise<string> {
  const answer = Promise.withResolvers<string>()
  let text = ''
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
        text += chunk.toString()
        if (text.endsWith('}')) answer.resolve(text)
      },
      close: () => answer.resolve(text),
      error: (_, error) => answer.reject(error),
    },
  })
  socket.write(start)
  const sending = setInterval(() => socket.write(part), 1)
  try {
    return await answer.promise
  } finally {
    clearInterval(sending)
    socket.end()
  }
}
