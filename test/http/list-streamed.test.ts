import { describe, expect, test } from 'bun:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '../../src/error.ts'
import { PAGE_PLANTS } from '../../src/http/lists/render-list.ts'
import type { AppOptions } from '../../src/http/options.ts'
import { openConnection } from '../support/raw-connection.ts'
import { countPages, createEven, createMany, FAULT, MANY, namesIn, nextOf } from './support/long-lists.ts'
import { type Answer, listRequest, startService } from './support/service.ts'
import { IN_PROCESS, OVER_TCP } from './support/transports.ts'

describe.each(OVER_TCP)('a list of many pages of the store, $name', (transport) => {
  test('holds every plant once, with a limit and without, and Link leads on to the others', async () => {
    await using service = await startService(transport)
    const user = await service.userIdOf('me')

    const names: string[] = []
    for (const count of [0, 1, PAGE_PLANTS - 1, PAGE_PLANTS, PAGE_PLANTS + 1, 2 * PAGE_PLANTS, MANY]) {
      while (names.length < count) names.push(await createEven(service.store, user, names.length))
      expect(await service.names()).toEqual(names)
    }
    for (const limit of [PAGE_PLANTS - 1, PAGE_PLANTS, PAGE_PLANTS + 1, MANY - 1, MANY, MANY + 1, 100]) {
      const pages: string[][] = []
      for (let query: string | undefined = `?limit=${limit}`; query !== undefined; ) {
        const answer: Answer = await service.list(query)
        pages.push(namesIn(answer))
        query = nextOf(answer)
      }
      expect([limit, pages.length, pages.flat()]).toEqual([limit, Math.ceil(MANY / limit), names])
    }
  })

  test('is sent in chunks without Content-Length and ETag if it has no limit', async () => {
    await using service = await startService(transport)
    await createMany(service.store)

    const { status, headers, text, isClosed } = await service.exchange('GET', '/plants')

    expect([status, isClosed, text.slice(-8)]).toEqual([200, true, ']\r\n0\r\n\r\n'])
    const { date: _, 'x-request-id': __, connection: ___, ...rest } = Object.fromEntries(headers)
    expect(rest).toEqual({
      'cache-control': 'no-store',
      'content-type': 'application/json',
      'transfer-encoding': 'chunked',
      'x-content-type-options': 'nosniff',
    })
  })
})

describe.each(IN_PROCESS)('a list without a limit that is read in parts, $name', (transport) => {
  /** A service with many plants, and its list in parts. A part is read when the test asks for it. */
  async function startList() {
    const { pages, overrideStore } = countPages()
    const service = await startService(transport, { overrideStore })
    const names = await createMany(service.store)
    return { service, names, pages, parts: async () => partsOf(await service.fetch('/plants')) }
  }

  test('holds a plant once if others around the last plant that was read come and go', async () => {
    const { service, names, parts } = await startList()
    await using _service = service
    const user = await service.userIdOf('me')
    const rest = await parts()

    let text = (await rest.next()).value ?? ''
    const reached = namesInText(`${text}]`)
    const last = BigInt(reached.at(-1) ?? 0)
    const kept = new Set(names)
    for (const name of [reached.at(-1), reached.at(-2), names.at(PAGE_PLANTS), names.at(-1)]) {
      await service.store.deletePlant(user, BigInt(name ?? 0))
      kept.delete(name ?? '')
    }
    for (const id of [-1n, 1n, last - 1n, last + 1n, 2n * BigInt(MANY)]) {
      await service.store.createPlant(user, { id, name: String(id) })
    }
    for await (const part of rest) text += part

    expect(reached).toHaveLength(PAGE_PLANTS)
    expectListed(namesInText(text), [...kept])
  })

  test('is read from the store no faster than the client takes it', async () => {
    const { service, pages, parts } = await startList()
    await using _service = service

    const rest = await parts()
    const read = [pages()]
    for await (const _ of rest) read.push(pages())

    expect(read.filter((count, taken) => count > Math.max(1, taken))).toEqual([])
    expect(pages()).toBe(3)
  })

  test('is not read on when the client has gone', async () => {
    const { service, pages, parts } = await startList()
    await using _service = service

    const rest = await parts()
    await rest.next()
    await rest.return(undefined)
    // The read of the second page would begin within these turns.
    for (let turn = 0; turn < 10; turn++) await nextTurn()

    expect(pages()).toBe(1)
  })
})

describe.each(OVER_TCP)('a list without a limit of a store whose reads are counted, $name', (transport) => {
  test('is never read for HEAD, unlike a capped list', async () => {
    const { pages, overrideStore } = countPages()
    await using service = await startService(transport, { overrideStore })
    await createMany(service.store)

    for (const query of ['', '?after=5', '?x=1']) {
      const { status, headers, body } = await service.exchange('HEAD', `/plants${query}`)
      expect([status, headers.get('content-type'), body, pages()]).toEqual([200, 'application/json', '', 0])
    }
    await service.exchange('HEAD', '/plants?limit=5')
    expect(pages()).toBe(1)
  })

  test.each(['1.1', '1.0'] as const)(
    'ends without a last chunk and is logged when a later page fails, in HTTP/%s',
    async (version) => {
      const firstPage = Promise.withResolvers<void>()
      const { pages, overrideStore } = countPages({ failAt: 3, ready: () => firstPage.promise })
      await using service = await startService(transport, { overrideStore })
      await createMany(service.store)
      using connection = await openConnection(service.port)

      await connection.send(listRequest(service.token).replace('1.1', version))
      await connection.until(() => connection.text().includes('"998"'))
      firstPage.resolve()
      await connection.until(connection.isClosed)

      const answer = connection.text()
      expect(pages()).toBe(3)
      expect(answer).toStartWith('HTTP/1.1 200 ')
      expect(answer).toContain('[{"name":"0"},{"name":"2"}')
      expectNoEnd(answer)
      expect(service.logLines()).toContainEqual(
        expect.objectContaining({ level: 'error', err: expect.objectContaining({ message: FAULT.message }) }),
      )
    },
  )
})

describe.each(IN_PROCESS)('a list without a limit and its token, $name', (transport) => {
  /** Reads a list of three parts, and calls `act` at the look-up of the token before each part. */
  const listWhile = async (act: (lookup: number) => void, app: Partial<AppOptions> = {}) => {
    let lookups = 0
    await using service = await startService(transport, {
      app,
      overrideStore: (store) => ({
        hasSameTokens: () => false,
        async findToken(hash) {
          act(++lookups)
          return store.findToken(hash)
        },
      }),
    })
    await createMany(service.store)
    const { text: token } = await service.createToken(app.nowMs && { expiresAtMs: 1000 })
    const answer = await service.list('', { token }).catch(() => undefined)
    return { plants: answer?.body.length, lookups, messages: service.logLines().map(({ msg }) => msg) }
  }

  test('goes on while the store of tokens cannot tell what has changed, and while it cannot be reached', async () => {
    const fail = (lookup: number) => {
      if (lookup > 1) throw new AppError('store_failed', { cause: 'the cable is out' })
    }

    expect(await listWhile(() => {})).toMatchObject({ plants: MANY, lookups: 3 })
    expect(await listWhile(fail)).toMatchObject({ plants: MANY, lookups: 3 })
  })

  test('ends with an error once the token expires, and the log says why', async () => {
    let nowMs = 0
    const expire = (lookup: number) => {
      if (lookup === 2) nowMs = 1000
    }
    const { plants, messages } = await listWhile(expire, { nowMs: () => nowMs })

    expect(plants).toBeUndefined()
    expect(messages).toContain('a list was cut: its token is no longer accepted')
  })
})

/** Expects a list in order that has each plant once, and all plants that were kept. */
function expectListed(listed: readonly string[], kept: readonly string[]): void {
  expect(listed).toEqual([...new Set(listed)].toSorted((a, b) => Number(a) - Number(b)))
  const known = new Set(kept)
  expect(listed.filter((name) => known.has(name))).toEqual([...kept])
}

function expectNoEnd(answer: string): void {
  expect(answer).not.toContain(']')
  expect(answer).not.toContain('\r\n0\r\n')
}

const namesInText = (text: string): string[] => JSON.parse(text).map((plant: { name: string }) => plant.name)

/** The parts of an answer. A part is read when the caller asks for it. */
async function* partsOf(response: Response): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) yield typeof chunk === 'string' ? chunk : decoder.decode(chunk)
}
