import { expect, test } from 'bun:test'
import { addLongPlants, LONG_PLANTS, requestAndWait } from '../support/slow.ts'
import { serveDatabase } from './support/database.ts'

/** The end of a list that was sent whole, with its last chunk. */
const LIST_END = ']\r\n0\r\n\r\n'

const get = (path: string, token: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`

test('a server that ends cuts a list after --drain if its client stops reading, without the last chunk, and logs what was sent', async () => {
  await using service = await serveDatabase(['--drain', '1s'])
  const { server, token, database } = service
  addLongPlants(database)
  using reading = await requestAndWait(server.port, get('/plants', token))
  const exitCode = await server.end()
  const answer = await reading.readToEnd()
  const log = server.stdout().trim().split('\n')
  const { bytes } = log.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'request') ?? {}

  expect(exitCode).toBe(0)
  expect(answer.slice(-LIST_END.length)).not.toBe(LIST_END)
  expect(log.join()).toContain('"requests were cut: they took longer than --drain"')
  expect(bytes).toBeWithin(LONG_PLANTS.nameLength, LONG_PLANTS.count * LONG_PLANTS.nameLength)
})
