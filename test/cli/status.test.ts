import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { version } from '../../package.json'
import { SCHEMA_VERSION } from '../../src/store/sqlite/migrate.ts'
import { serve } from '../support/executable.ts'
import { done } from './support/answers.ts'
import { fillDatabase } from './support/database.ts'

test('beside a server, status prints the size of the WAL, and check finds the database whole', async () => {
  using made = await fillDatabase(2)
  await using server = await serve(made.database)
  const created = await server.request('POST', '/plants', { token: made.token, body: { id: 77, name: 'Fern' } })
  const status = await made.json('status')
  const check = await made.run('check')
  const walBytes = statSync(`${made.database}-wal`).size

  expect(created.status).toBe(200)
  expect(walBytes).toBeGreaterThan(0)
  expect(status).toEqual({
    version: expect.stringContaining(version),
    engine: expect.stringMatching(/^SQLite 3\.\d+\.\d+$/),
    path: made.database,
    bytes: statSync(made.database).size,
    isInUse: true,
    schema: SCHEMA_VERSION,
    schemaKnown: SCHEMA_VERSION,
    walBytes,
    users: 2,
    tokens: 3,
    plants: 5,
    durability: 'full',
  })
  expect(check).toEqual(done(`The database ${made.database} is whole.`))
  expect(await server.end()).toBe(0)
})
