import { describe, expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePostgresUrl } from '../../src/database-url.ts'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { administer, makeDatabase, POSTGRES_SERVER } from '../support/postgres.ts'
import { startCluster } from '../support/postgres-cluster.ts'
import { AS_SERVER, freePort, OWN_POSTGRES, ownedByServer } from '../support/postgres-system.ts'
import { startProgram } from '../support/program.ts'
import { lacks, type Requirement } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { done } from './support/answers.ts'
import { answerOf, createPlant, listNames } from './support/service-client.ts'

const PROGRAM = Bun.which('pgbouncer') ?? Bun.which('pgbouncer', { PATH: '/usr/sbin' })

const PGBOUNCER: Requirement = { missing: 'pgbouncer is missing', isMet: () => PROGRAM !== null }

/** Starts PgBouncer before a database. All clients share these connections, one per transaction. */
async function startPgBouncer(url: string, connections: number) {
  const address = parsePostgresUrl(url)
  if (typeof address === 'string' || PROGRAM === null) throw new Error('pgbouncer or the database is missing')
  const { host, port, user, database } = address
  const folder = makeFolder()
  const ownPort = freePort()
  const file = join(folder.path, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
${database} = host=${host} port=${port} dbname=${database} user=${user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
`,
  )
  chmodSync(folder.path, 0o755)
  ownedByServer(file)
  const { child, stderr } = startProgram([...AS_SERVER, PROGRAM, file])
  await until('pgbouncer is up', (see) => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`pgbouncer did not start: ${stderr()}`)
    return see(stderr()).includes('process up')
  })
  return {
    /** The URL of the same database through PgBouncer. */
    url: `postgres://${encodeURIComponent(user)}@127.0.0.1:${ownPort}/${database}?sslmode=disable`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      folder[Symbol.dispose]()
    },
  }
}

/** Variables that programs for PostgreSQL listen to. */
const FOREIGN_VARIABLES = {
  PGDATABASE: 'nowhere',
  PGHOST: '192.0.2.1',
  PGPORT: '1',
  PGUSER: 'nobody',
  PGPASSWORD: 'wrong',
  PGSSLMODE: 'verify-full',
  PGOPTIONS: '-c default_transaction_read_only=on',
  PGCHANNELBINDING: 'require',
  PGAPPNAME: 'other',
  DATABASE_URL: 'postgres://nobody:wrong@192.0.2.1:1/nowhere?sslmode=require',
  POSTGRES_URL: 'postgres://nobody:wrong@192.0.2.1:1/nowhere',
  TLS_DATABASE_URL: 'postgres://nobody:wrong@192.0.2.1:1/nowhere',
}

describe.skipIf(lacks(POSTGRES_SERVER))('two processes on one PostgreSQL database', () => {
  test('say who created the store, show at once what the other one wrote, and end with exit code 0', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const create = () => runPlantstore(['token', 'create', '--user', 'me', '--database', database.url])
    const [first, second] = [await create(), await create()]
    const token = first.stdout.trim()
    await using one = await serve(database.url)
    // Variables of other programs, like PGDATABASE, must change nothing.
    await using two = await serve(database.url, [], { env: FOREIGN_VARIABLES })

    const [, where] = /^Created a new, empty store: (postgres:\/\/\S+)\.\n/.exec(first.stderr) ?? []
    expect(new URL(where ?? '').pathname).toBe(new URL(database.url).pathname)
    expect(second.stderr).not.toContain('Created a new, empty store')
    expect(one.stdout()).toContain(`"database":"${where}"`)
    expect(one.stdout()).not.toContain('created')
    for (let id = 1; id <= 10; id++) {
      const [writer, reader] = id % 2 === 0 ? [one, two] : [two, one]
      expect(await createPlant(writer, token, id)).toBe(200)
      expect(await listNames(reader, token)).toEqual(Array.from({ length: id }, (_, index) => `Fern ${index + 1}`))
      expect(await createPlant(reader, token, id)).toBe(409)
    }
    expect(await answerOf(one.request('DELETE', '/plants/1', { token }))).toMatchObject({ status: 204 })
    expect(await answerOf(two.request('DELETE', '/plants/1', { token }))).toMatchObject({ status: 404 })

    expect([await one.end(), await two.end()]).toEqual([0, 0])
  })

  test('refuse a revoked token in the first request after TOKEN_CHANGES_SEEN_WITHIN_MS', async () => {
    await using database = await makeDatabase()
    const token = await createTokenIn(database.url)
    await using server = await serve(database.url)
    for (let count = 0; count < 3; count++)
      expect(await answerOf(server.request('GET', '/plants', { token }))).toMatchObject({ status: 200 })

    const revoked = await runPlantstore(['token', 'revoke', '1', '--database', database.url])
    // The promise is about time alone: a request meanwhile would make the server learn of the change.
    await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)

    expect(revoked).toEqual(done('Revoked token 1 of user me (write).'))
    expect(await answerOf(server.request('GET', '/plants', { token }))).toMatchObject({ status: 401 })
  })
})

test.skipIf(lacks(OWN_POSTGRES))(
  'a server that starts before its database listens, and is ready as soon as the database is there',
  async () => {
    using cluster = await startCluster()
    cluster.stop('fast')

    await using server = await serve(cluster.url, ['--first-token'])
    const probes = [await answerOf(server.request('GET', '/healthz')), await answerOf(server.request('GET', '/readyz'))]
    expect(probes).toMatchObject([{ status: 200 }, { status: 503 }])
    expect(await answerOf(server.request('GET', '/plants', { token: 'plst_0' }))).toMatchObject({ status: 401 })
    cluster.start()
    await until(
      'the server is ready',
      async (see) => see(await answerOf(server.request('GET', '/readyz'))).status === 200,
    )
    await until('the token is printed', (see) => see(server.stderr()).includes('list the plants'))

    const token = /plst_\w+/.exec(server.stderr())?.[0] ?? ''
    expect(await createPlant(server, token, 1)).toBe(200)
    expect(await listNames(server, token)).toContain('Fern 1')
    expect(await server.end()).toBe(0)
  },
)

describe.skipIf(lacks(POSTGRES_SERVER, PGBOUNCER))('servers behind PgBouncer', () => {
  test('share three connections without prepared statements or variables of the environment, and answer as ever', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    await using pooler = await startPgBouncer(database.url, 3)
    const flags = ['--database-prepare', 'false']
    const created = await runPlantstore(['token', 'create', '--user', 'me', '--database', pooler.url, ...flags])
    const token = created.stdout.trim()
    await using one = await serve(pooler.url, flags)
    await using two = await serve(pooler.url, flags, { env: FOREIGN_VARIABLES })
    // Many more at once than connections, and few enough that a busy machine answers them in time.
    const ids = Array.from({ length: 60 }, (_, id) => id)

    const statuses = await Promise.all(ids.flatMap((id) => [createPlant(one, token, id), createPlant(two, token, id)]))
    const outcomes = ids.map((id) => statuses.slice(2 * id, 2 * id + 2).sort())
    const deleted = await Promise.all(
      ids.slice(30).map(async (id) => (await one.request('DELETE', `/plants/${id}`, { token })).status),
    )

    expect(outcomes).toEqual(ids.map(() => [200, 409]))
    expect(deleted).toEqual(ids.slice(30).map(() => 204))
    expect(await listNames(two, token)).toEqual(ids.slice(0, 30).map((id) => `Fern ${id}`))
    expect(await answerOf(two.request('GET', '/readyz'))).toMatchObject({ status: 200 })
    const connections = await administer(database.url, (sql) =>
      sql
        .unsafe(`select count(*) from pg_stat_activity where datname = '${database.name}' and pid <> pg_backend_pid()`)
        .values(),
    )
    expect(connections[0]?.[0]).toBeLessThanOrEqual(3n)
    expect([await one.end(), await two.end()]).toEqual([0, 0])
  })

  test('that prepare statements all the same say what to change, and so do commands', async () => {
    await using database = await makeDatabase()
    const token = await createTokenIn(database.url)
    await using pooler = await startPgBouncer(database.url, 1)
    await using server = await serve(pooler.url)

    const refused = await until('a statement is lost', async () => {
      const answer = await server.request('PUT', '/plants/1', { token, body: { name: 'Fern' } })
      const body = (await answer.json()) as Record<'error' | 'message', unknown>
      return `${body.message}`.includes('Prepared') && body
    })
    const listed = await runPlantstore(['token', 'list', '--database', pooler.url])

    const message = 'Prepared statements get lost, nothing was stored: behind a pooler, use --database-prepare false.'
    expect(refused).toEqual({ error: 50302, message })
    expect(listed).toEqual({ exitCode: 3, stdout: '', stderr: `plantstore: ${message}\n` })
  })
})
