import { describe, expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { makeCertificate, OPENSSL_IS_SKIPPED, OPENSSL_NOTE } from '../support/certificates.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { PGBOUNCER_IS_SKIPPED, PGBOUNCER_NOTE, startPgBouncer } from '../support/pgbouncer.ts'
import { PLACES } from '../support/places.ts'
import {
  administer,
  CLUSTER_IS_SKIPPED,
  CLUSTER_NOTE,
  freePort,
  GUARDED,
  makeDatabase,
  ownedByServer,
  POSTGRES_IS_SKIPPED,
  POSTGRES_NOTE,
  startCluster,
} from '../support/postgres.ts'
import { createTokenIn } from '../support/tokens.ts'

/** More than a busy machine takes to send and answer a request. */
const SLACK_MS = 500
/** Variables that programs for PostgreSQL listen to. */
const FOREIGN = {
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

type Server = Awaited<ReturnType<typeof serve>>

const createPlant = async (server: Server, token: string, id: number) =>
  (await server.request('POST', '/plants', { token, body: { id, name: `Fern ${id}` } })).status
const listNames = async (server: Server, token: string) =>
  ((await (await server.request('GET', '/plants?limit=100', { token })).json()) as { name: string }[]).map(
    ({ name }) => name,
  )
const statusOf = async (server: Server, path: string, token?: string) =>
  (await server.request('GET', path, token === undefined ? {} : { token })).status

describe.skipIf(POSTGRES_IS_SKIPPED)(`servers on one PostgreSQL database${POSTGRES_NOTE}`, () => {
  test('show at once what was written through another one, and end in good order', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const token = await createTokenIn(database.url)
    await using one = await serve(database.url)
    await using two = await serve(database.url)

    for (let id = 1; id <= 20; id++) {
      const [writer, reader] = id % 2 === 0 ? [one, two] : [two, one]
      expect(await createPlant(writer, token, id)).toBe(200)
      expect(await listNames(reader, token)).toEqual(Array.from({ length: id }, (_, index) => `Fern ${index + 1}`))
      expect(await createPlant(reader, token, id)).toBe(409)
    }
    expect((await one.request('DELETE', '/plants/1', { token })).status).toBe(204)
    expect((await two.request('DELETE', '/plants/1', { token })).status).toBe(404)

    expect([await one.end(), await two.end()]).toEqual([0, 0])
  })

  test('refuse a token that was revoked, in whatever process, within the time that is promised', async () => {
    await using database = await makeDatabase()
    await using one = await serve(database.url)
    await using two = await serve(database.url)
    for (let round = 0; round < 5; round++) {
      const token = await createTokenIn(database.url)
      const id = JSON.parse((await runPlantstore(['token', 'list', '--json', '--database', database.url])).stdout).at(
        -1,
      ).id
      for (const server of [one, two])
        for (let count = 0; count < 3; count++) expect(await statusOf(server, '/plants', token)).toBe(200)

      const { exitCode } = await runPlantstore(['token', 'revoke', String(id), '--database', database.url])
      const revokedMs = performance.now()

      expect(exitCode).toBe(0)
      for (const server of [one, two]) {
        while ((await statusOf(server, '/plants?limit=1', token)) === 200) await Bun.sleep(5)
      }
      expect(performance.now() - revokedMs).toBeLessThan(TOKEN_CHANGES_SEEN_WITHIN_MS + SLACK_MS)
    }
  })

  test('take nothing from the environment but their own variables', async () => {
    await using database = await makeDatabase()
    const token = await createTokenIn(database.url)

    await using server = await serve(database.url, [], { env: FOREIGN })

    expect(await createPlant(server, token, 1)).toBe(200)
    expect(await listNames(server, token)).toEqual(['Fern 1'])
  })
})

describe.skipIf(CLUSTER_IS_SKIPPED)(`a server whose database${CLUSTER_NOTE}`, () => {
  test('is not there listens, is not ready, and is ready as soon as it is there', async () => {
    using cluster = await startCluster()
    cluster.stop('fast')

    await using server = await serve(cluster.url, ['--first-token'])
    expect([await statusOf(server, '/healthz'), await statusOf(server, '/readyz')]).toEqual([200, 503])
    const stranger = await server.request('GET', '/plants', { token: 'plst_0' })
    expect(stranger.status).toBe(401)
    cluster.start()
    while ((await statusOf(server, '/readyz')) !== 200) await Bun.sleep(20)
    while (!server.stderr().includes('/plants/1')) await Bun.sleep(20)

    const token = /plst_\w+/.exec(server.stderr())?.[0] ?? ''
    expect(await createPlant(server, token, 1)).toBe(200)
    cluster.stop('immediate')
    const [refused] = await Promise.all([server.request('POST', '/plants', { token, body: { id: 2, name: 'Ivy' } })])
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    while ((await statusOf(server, '/readyz')) !== 503) await Bun.sleep(20)
    expect(await statusOf(server, '/healthz')).toBe(200)
    cluster.start()
    while ((await statusOf(server, '/readyz')) !== 200) await Bun.sleep(20)
    expect(await listNames(server, token)).toContain('Fern 1')
    expect(await server.end()).toBe(0)
  })

  test('wants another password ends with exit code 3 and one line, as every command does', async () => {
    using cluster = await startCluster()
    const url = (await cluster.makeGuarded()).replace(GUARDED.password, 'Wrong-99')

    for (const args of [['serve', '--listen', '127.0.0.1:0'], ['token', 'list'], ['check']]) {
      const { exitCode, stderr, stdout } = await runPlantstore([...args, '--database', url])
      expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' })
      expect(stderr).toMatch(/^plantstore: [^\n]*password authentication failed[^\n]*\n$/)
      expect(stderr).not.toContain('Wrong-99')
    }
  })

  test('takes its password from a file shows it nowhere', async () => {
    using cluster = await startCluster()
    using folder = makeFolder()
    const url = (await cluster.makeGuarded()).replace(`:${GUARDED.password}`, '')
    const file = join(folder.path, 'password')
    writeFileSync(file, `${GUARDED.password}\n`)
    const env = { PLANTSTORE_DATABASE_PASSWORD_FILE: file }
    expect((await runPlantstore(['token', 'create', '--user', 'me', '--database', url], { env })).exitCode).toBe(0)

    await using server = await serve(url, ['--log-level', 'debug'], { env })
    const answers = await (await server.request('GET', '/readyz')).text()
    cluster.stop('immediate')
    await server.request('GET', '/plants', { token: 'plst_0' })
    await server.request('GET', '/readyz')
    cluster.start()

    const used = { server, folder: cluster.data, database: url, answers }
    for (const place of ['answers', 'log', 'stderr', 'process'] as const) {
      expect([place, (await PLACES[place]?.(used))?.includes(GUARDED.password)]).toEqual([place, false])
    }
    expect(server.stdout()).toContain(`postgres://${GUARDED.user}@127.0.0.1:${cluster.port}/${GUARDED.user}`)
  })

  test('has its password in the URL keeps it out of the log and of all that is told', async () => {
    using cluster = await startCluster()
    const url = await cluster.makeGuarded()

    await using server = await serve(url, ['--log-level', 'debug'])
    await server.request('GET', '/readyz')
    cluster.stop('immediate')
    await server.request('GET', '/readyz')
    cluster.start()
    while ((await statusOf(server, '/readyz')) !== 200) await Bun.sleep(20)
    const outputs = await Promise.all(
      [['check'], ['token', 'list'], ['user', 'list'], ['user', 'delete', 'nobody', '--yes']].map((args) =>
        runPlantstore([...args, '--database', url]),
      ),
    )

    expect(server.stdout()).toContain('there is no token yet')
    const told = outputs.map(({ stdout, stderr }) => stdout + stderr).join()
    expect(told).toContain('is whole')
    expect([server.stdout(), server.stderr(), told].join()).not.toContain(GUARDED.password)
  })

  test.skipIf(OPENSSL_IS_SKIPPED)(
    `is who its certificate says is believed, and nobody else${OPENSSL_NOTE}`,
    async () => {
      using folder = makeFolder()
      chmodSync(folder.path, 0o755)
      const authority = await makeCertificate(folder.path, 'authority', { isAuthority: true })
      const stranger = await makeCertificate(folder.path, 'stranger', { isAuthority: true })
      const { certPath, keyPath } = await makeCertificate(folder.path, 'server', {
        issuer: authority,
        names: 'DNS:localhost',
      })
      for (const path of [certPath, keyPath]) ownedByServer(path)
      chmodSync(keyPath, 0o600)
      using cluster = await startCluster({ ssl: 'on', ssl_cert_file: certPath, ssl_key_file: keyPath })
      const url = await cluster.makeGuarded()
      const connect = async (host: string, query: string, env: Record<string, string> = {}) => {
        const database = `${url.replace('127.0.0.1', host)}?${query}`
        const { exitCode, stderr } = await runPlantstore(['token', 'create', '--user', 'me', '--database', database], {
          env,
        })
        return [exitCode, /certificate|altnames/.test(stderr)]
      }
      const NOT_ACCEPTED = [3, true]

      expect(await connect('localhost', `sslmode=verify-full&sslrootcert=${authority.certPath}`)).toEqual([0, false])
      expect(await connect('127.0.0.1', `sslmode=verify-ca&sslrootcert=${authority.certPath}`)).toEqual([0, false])
      expect(await connect('127.0.0.1', 'sslmode=require')).toEqual([0, false])
      expect(await connect('127.0.0.1', `sslmode=verify-full&sslrootcert=${authority.certPath}`)).toEqual(NOT_ACCEPTED)
      const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' }
      expect(await connect('localhost', `sslmode=verify-full&sslrootcert=${stranger.certPath}`, env)).toEqual(
        NOT_ACCEPTED,
      )
      expect(await connect('localhost', 'sslmode=verify-full', env)).toEqual(NOT_ACCEPTED)
      expect(await connect('localhost', 'sslmode=verify-ca', env)).toEqual(NOT_ACCEPTED)
      // What is encrypted is not only said to be.
      await using server = await serve(`${url}?sslmode=require`)
      expect(await statusOf(server, '/readyz')).toBe(200)
      const encrypted = await administer(cluster.url, (sql) =>
        sql
          .unsafe(`select count(*), count(*) filter (where ssl) from pg_stat_ssl join pg_stat_activity using (pid)
        where usename = '${GUARDED.user}'`)
          .values(),
      )
      const [[all, ssl] = []] = encrypted
      expect(Number(all)).toBeGreaterThan(0)
      expect(ssl).toBe(all)
    },
  )

  test('has no TLS is refused where that was asked for', async () => {
    using cluster = await startCluster()
    const url = await cluster.makeGuarded()

    for (const mode of ['require', 'verify-ca', 'verify-full']) {
      const { exitCode, stderr } = await runPlantstore(['token', 'list', '--database', `${url}?sslmode=${mode}`])
      expect([mode, exitCode, stderr]).toEqual([mode, 3, expect.stringContaining('SSL')])
    }
  })
})

test('a warning tells of plain text to another machine, and of none on this one or where it is encrypted', async () => {
  const port = freePort()
  const warnings = async (where: string) => {
    await using server = await serve(`postgres://me:Sesame-99@${where}`)
    return server
      .stdout()
      .split('\n')
      .filter((line) => line.includes('plain text')).length
  }

  expect(await warnings('192.0.2.1/plants')).toBe(1)
  expect(await warnings('192.0.2.1/plants?sslmode=disable')).toBe(1)
  expect(await warnings('192.0.2.1/plants?sslmode=require')).toBe(0)
  expect(await warnings(`127.0.0.1:${port}/plants`)).toBe(0)
  expect(await warnings(`localhost:${port}/plants?sslmode=disable`)).toBe(0)
})

describe.skipIf(POSTGRES_IS_SKIPPED || PGBOUNCER_IS_SKIPPED)(
  `servers behind PgBouncer${POSTGRES_NOTE}${PGBOUNCER_NOTE}`,
  () => {
    test('share fewer connections than they have, and answer as ever', async () => {
      await using database = await makeDatabase({ isEmpty: true })
      await using pooler = await startPgBouncer(database.url, 3)
      const flags = ['--database-prepare', 'false']
      const created = await runPlantstore(['token', 'create', '--user', 'me', '--database', pooler.url, ...flags])
      const token = created.stdout.trim()
      await using one = await serve(pooler.url, flags)
      await using two = await serve(pooler.url, flags, { env: FOREIGN })
      const ids = Array.from({ length: 200 }, (_, id) => id)

      const statuses = await Promise.all(
        ids.flatMap((id) => [createPlant(one, token, id), createPlant(two, token, id)]),
      )
      const outcomes = ids.map((id) => statuses.slice(2 * id, 2 * id + 2).sort())
      const deleted = await Promise.all(
        ids.slice(100).map(async (id) => (await one.request('DELETE', `/plants/${id}`, { token })).status),
      )

      expect(outcomes).toEqual(ids.map(() => [200, 409]))
      expect(deleted).toEqual(ids.slice(100).map(() => 204))
      expect(await listNames(two, token)).toEqual(ids.slice(0, 100).map((id) => `Fern ${id}`))
      expect(await statusOf(two, '/readyz')).toBe(200)
      const connections = await administer(database.url, (sql) =>
        sql
          .unsafe(
            `select count(*) from pg_stat_activity where datname = '${database.name}' and pid <> pg_backend_pid()`,
          )
          .values(),
      )
      expect(connections[0]?.[0]).toBeLessThanOrEqual(3n)
      expect([await one.end(), await two.end()]).toEqual([0, 0])
    })
  },
)
