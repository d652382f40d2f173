import { describe, expect, test } from 'bun:test'
import { STORES } from '../support/stores.ts'
import {
  appOf,
  bearer,
  createMany,
  createUser,
  FAULT,
  failingOn,
  get,
  listRequest,
  serveApp,
} from './support/long-lists.ts'

describe.each(STORES)('a list without a limit that fails, read from $name', (implementation) => {
  test('is cut without the last chunk if it fails half-way', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)

    for (const version of ['1.1', '1.0']) {
      const firstPage = Promise.withResolvers<void>()
      const { store, calls } = failingOn(3, opened.store, () => firstPage.promise)
      await using server = await serveApp(store)

      const answer = await readToTheEnd(server.port, get(token, version), (text) => {
        if (text.includes('"998"')) firstPage.resolve()
      })

      expect(calls()).toBe(3)
      expect(answer).toStartWith('HTTP/1.1 200 ')
      expect(answer).toContain('[{"name":"0"},{"name":"2"}')
      expect(answer).not.toContain(']')
      expect(answer).not.toContain('\r\n0\r\n')
    }
  })

  test('is cut without the last chunk if it fails before anything was sent', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const { store, calls } = failingOn(2, opened.store)
    await using server = await serveApp(store)

    const answer = await readToTheEnd(server.port, get(token), () => {})

    expect(calls()).toBe(2)
    expect(answer).not.toContain(']')
    expect(answer).not.toContain('\r\n0\r\n')
  })

  test('fails for a client that reads it as a whole, and for the log, if it fails half-way', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const { store, calls } = failingOn(3, opened.store)
    await using server = await serveApp(store)

    const reading = fetch(`http://127.0.0.1:${server.port}/plants`, { headers: bearer(token) })
    const outcome = await reading.then((response) => response.text()).catch(() => 'cut')

    expect([outcome, calls()]).toEqual(['cut', 3])
    expect(server.logs()).toContain('"level":"error"')
    expect(server.logs()).toContain(FAULT.message)
  })

  test('is answered with an error if it fails at once', async () => {
    await using opened = await implementation.open()
    const { token } = await createUser(opened.store)

    const response = await appOf(failingOn(1, opened.store).store)(listRequest(token))

    const message = expect.not.stringContaining(FAULT.message)
    expect([response.status, await response.json()]).toEqual([500, { error: 50000, message }])
  })
})

/** Sends bytes and returns what comes back until the server closes. `onText` is told what is there so far. */
async function readToTheEnd(port: number, bytes: string, onText: (text: string) => void): Promise<string> {
  let text = ''
  const closed = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
        text += chunk.toString()
        onText(text)
      },
      close: () => closed.resolve(),
      error: (_, error) => closed.reject(error),
    },
  })
  socket.write(bytes)
  await closed.promise
  return text
}
