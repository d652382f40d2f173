import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { version } from '../../package.json'
import { SCHEMA_VERSION } from '../../src/store/sqlite/migrate.ts'
import { snapshot } from '../store/sqlite/files.ts'
import { serve } from '../support/executable.ts'
import { fillDatabase } from './support/database.ts'

/** A database of two users with three tokens and two plants each. */
async function makeDatabase() {
  const made = await fillDatabase(2)
  return { ...made, run: (...args: readonly string[]) => made.run('status', ...args) }
}

const AT_REST = {
  version: expect.stringContaining(version),
  engine: expect.stringMatching(/^SQLite 3\.\d+\.\d+$/),
  isInUse: false,
  schema: SCHEMA_VERSION,
  schemaKnown: SCHEMA_VERSION,
  walBytes: 0,
  users: 2,
  tokens: 3,
  plants: 4,
  durability: 'full',
}

describe.concurrent('status', () => {
  test('prints what a database at rest is and holds, and does not change it', async () => {
    using made = await makeDatabase()
    const before = snapshot(made.folder)
    const { stdout, stderr, exitCode } = await made.run('--json')

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    expect(JSON.parse(stdout)).toEqual({ ...AT_REST, path: made.database, bytes: statSync(made.database).size })
    expect(snapshot(made.folder)).toEqual(before)
  })

  test('prints the same beside a server, with the size of the WAL', async () => {
    using made = await makeDatabase()
    await using server = await serve(made.database)
    const created = await server.request('POST', '/plants', { token: made.token, body: { id: 77, name: 'Fern' } })
    const { stdout } = await made.run('--json')
    const walBytes = statSync(`${made.database}-wal`).size

    expect(created.status).toBe(200)
    expect(walBytes).toBeGreaterThan(0)
    expect(JSON.parse(stdout)).toEqual({
      ...AT_REST,
      path: made.database,
      bytes: statSync(made.database).size,
      isInUse: true,
      plants: 5,
      walBytes,
    })
    expect(await server.end()).toBe(0)
  })

  test('prints a table for people by default', async () => {
    using made = await makeDatabase()
    const { stdout } = await made.run('--durability', 'normal')

    expect(stdout.replace(/SQLite [\d.]+/, 'SQLite').replace(/^version +\S+/, 'version')).toBe(
      `version SQLite
database    ${made.database}, at rest
schema      ${SCHEMA_VERSION}, up to date
size        ${statSync(made.database).size} bytes
WAL         0 bytes
users       2
tokens      3
plants      4
durability  normal, by the options of this command
`,
    )
  })
})
