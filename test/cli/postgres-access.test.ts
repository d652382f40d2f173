import { describe, expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { administer, runScript } from '../support/postgres.ts'
import { type Cluster, GUARDED, startCluster } from '../support/postgres-cluster.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { OWN_POSTGRES, ownedByServer } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { isBusy } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { OUTPUTS } from './support/outputs.ts'
import { answerOf } from './support/service-client.ts'

const COMMANDS = [['check'], ['token', 'list'], ['user', 'list'], ['user', 'delete', 'nobody', '--yes']]

describe.skipIf(lacks(OWN_POSTGRES))('the password of a PostgreSQL database', () => {
  test.each([
    { source: 'a file', names: ['answers', 'log', 'stderr', 'process'] },
    // The URL is an argument, which the system shows to other users.
    { source: 'the URL', names: ['answers', 'log', 'stderr'] },
  ])('shows nowhere if it comes from $source', async ({ source, names }) => {
    using cluster = await startCluster()
    using folder = makeFolder()
    const url = await makeGuarded(cluster)
    const file = join(folder.path, 'password')
    writeFileSync(file, `${GUARDED.password}\n`)
    const isFile = source === 'a file'
    const env: Record<string, string> = isFile ? { PLANTSTORE_DATABASE_PASSWORD_FILE: file } : {}
    const database = isFile ? url.replace(`:${GUARDED.password}`, '') : url

    await using server = await serve(database, ['--log-level', 'debug'], { env })
    const answers = await (await server.request('GET', '/readyz')).text()
    cluster.stop('immediate')
    await server.request('GET', '/plants', { token: 'plst_0' })
    await server.request('GET', '/readyz')
    cluster.start()
    if (isFile) {
      writeFileSync(file, `${GUARDED.password}\n\n`)
      const problem = `"kind":"store_failed","reason":"Error: the file ${file} must have one line`
      await until('the server says what is wrong', async (see) => {
        return (
          (await answerOf(server.request('GET', '/readyz'))).status === 503 && see(server.stdout()).includes(problem)
        )
      })
      writeFileSync(file, GUARDED.password)
    }
    await until(
      'the server is ready',
      async (see) => see(await answerOf(server.request('GET', '/readyz'))).status === 200,
    )
    const outputs = await Promise.all(COMMANDS.map((args) => runPlantstore([...args, '--database', database], { env })))
    const output = outputs.map(({ stdout, stderr }) => stdout + stderr).join()

    const used = { server, folder: cluster.data, database, answers }
    for (const name of names) {
      expect([name, (await OUTPUTS[name]?.(used))?.includes(GUARDED.password)]).toEqual([name, false])
    }
    expect(output).toContain('is whole')
    expect(output).not.toContain(GUARDED.password)
    expect(server.stdout()).toContain(`postgres://${GUARDED.user}@127.0.0.1:${cluster.port}/${GUARDED.user}`)
  })
})

test.skipIf(lacks(OWN_POSTGRES))(
  'the password of a PostgreSQL database can change under a server, whose connections go on, and no put is refused once the file has it',
  async () => {
    using cluster = await startCluster()
    using folder = makeFolder()
    const url = await makeGuarded(cluster)
    using proxy = startPostgresProxy(url)
    const file = join(folder.path, 'password')
    writeFileSync(file, GUARDED.password)
    const token = await createTokenIn(url)
    await using server = await serve(proxy.by(url), [], { env: { PLANTSTORE_DATABASE_PASSWORD_FILE: file } })
    const put = async () => (await server.request('PUT', '/plants/1', { token, body: { name: 'Fern' } })).status
    expect(await put()).toBe(201)

    await runScript(cluster.url, `alter role ${GUARDED.user} password 'Sesame-100'`)
    expect(await put()).toBe(200)
    const lost = `select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = '${GUARDED.user}'`
    await runScript(cluster.url, lost)
    await until('a new connection is refused', async () => (await put()) === 503)
    let logins = 0
    proxy.decide((from, bytes) => (from === 'client' && bytes.includes('SCRAM') && ++logins > 0 ? 'hold' : 'pass'))
    const waiting = put()
    await until('a login is under way with the old one', () => logins > 0)
    writeFileSync(file, 'Sesame-100')
    proxy.decide(() => 'pass')
    proxy.release()

    // On a busy machine the logins may take longer than a put waits for a connection.
    const first = await waiting
    if (first === 503 && isBusy()) await until('a put is in time', async () => (await put()) === 200)
    else expect(first).toBe(200)
    expect([await put(), await put()]).toEqual([200, 200])
    expect(await answerOf(server.request('GET', '/readyz'))).toMatchObject({ status: 200 })
  },
)

describe.skipIf(lacks(OWN_POSTGRES))('a connection to a PostgreSQL database', () => {
  test.skipIf(lacks(OPENSSL))('needs the certificate that sslmode asks for, and is encrypted', async () => {
    using folder = makeFolder()
    using cluster = await startTlsCluster(folder.path)
    const { url, authority, stranger } = cluster
    const connect = async (host: string, query: string, env: Record<string, string> = {}) => {
      const database = `${url.replace('127.0.0.1', host)}?${query}`
      const args = ['token', 'create', '--user', 'me', '--database', database]
      // A busy machine may need more than the 2 s that a command waits for a connection.
      return until('the database answers in time', async (see) => {
        const { exitCode, stderr } = see(await runPlantstore(args, { env }))
        return !/timeout|did not answer/i.test(stderr) && [exitCode, /certificate|altnames/.test(stderr)]
      })
    }
    const [accepted, refused] = [
      [0, false],
      [3, true],
    ]

    expect(await connect('localhost', `sslmode=verify-full&sslrootcert=${authority}`)).toEqual(accepted)
    expect(await connect('127.0.0.1', `sslmode=verify-ca&sslrootcert=${authority}`)).toEqual(accepted)
    expect(await connect('127.0.0.1', 'sslmode=require')).toEqual(accepted)
    expect(await connect('127.0.0.1', 'sslmode=require&channel_binding=require')).toEqual(accepted)
    expect(await connect('127.0.0.1', `sslmode=verify-full&sslrootcert=${authority}`)).toEqual(refused)
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: '0' }
    expect(await connect('localhost', `sslmode=verify-full&sslrootcert=${stranger}`, env)).toEqual(refused)
    expect(await connect('localhost', 'sslmode=verify-full', env)).toEqual(refused)
    expect(await connect('localhost', 'sslmode=verify-ca', env)).toEqual(refused)
    const system = 'sslmode=verify-full&sslrootcert=system'
    expect(await connect('localhost', system, env)).toEqual(refused)
    for (const variable of ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'])
      expect(await connect('localhost', system, { [variable]: authority })).toEqual(accepted)
    expect(await connect('127.0.0.1', system, { NODE_EXTRA_CA_CERTS: authority })).toEqual(refused)
    await using server = await serve(`${url}?sslmode=require`)
    expect(await answerOf(server.request('GET', '/readyz'))).toMatchObject({ status: 200 })
    expect(await cluster.areAllEncrypted()).toBe(true)
  })

  test('is refused with a wrong password, and without TLS if it must be encrypted', async () => {
    using cluster = await startCluster()
    const url = await makeGuarded(cluster)
    const listWith = (query: string) => runPlantstore(['token', 'list', '--database', url + query])
    const wrong = {
      exitCode: 3,
      stdout: '',
      stderr: expect.stringMatching(/^plantstore: .*authentication failed.*\n$/),
    }

    for (const args of [['serve', '--listen', '127.0.0.1:0'], ['token', 'list'], ['check']]) {
      const answer = await runPlantstore([...args, '--database', url.replace(GUARDED.password, 'Wrong-99')])
      expect(answer).toEqual(wrong)
      expect(answer.stderr).not.toContain('Wrong-99')
    }
    const unknown = url.replace(/\/\/[^@]*/, '//ada%40example.org')
    expect(await runPlantstore(['check', '--database', unknown])).toMatchObject({
      exitCode: 3,
      stderr: `plantstore: The database ${unknown} cannot be used: role "ada@example.org" does not exist.\n`,
    })
    for (const mode of ['require', 'verify-ca', 'verify-full']) {
      const { exitCode, stderr } = await listWith(`?sslmode=${mode}`)
      expect([mode, exitCode, stderr]).toEqual([mode, 3, expect.stringContaining('SSL')])
    }
    const bound = await listWith('?channel_binding=require')
    expect(bound).toMatchObject({ exitCode: 3, stderr: expect.stringMatching(/channel binding/i) })
  })
})

/** Creates the role that needs a password, with a database. Returns the URL of that database, through the port. */
async function makeGuarded({ url, port }: Cluster): Promise<string> {
  const { user, password } = GUARDED
  await administer(url, async (sql) => {
    await sql.unsafe(`create role ${user} login password '${password}'`).simple()
    await sql.unsafe(`create database ${user} owner ${user}`).simple()
  })
  return `postgres://${user}:${password}@127.0.0.1:${port}/${user}`
}

/** A server with a certificate for localhost, which an authority has signed. */
async function startTlsCluster(folder: string) {
  chmodSync(folder, 0o755)
  const authority = await makeCertificate(folder, 'authority', { isAuthority: true })
  const stranger = await makeCertificate(folder, 'stranger', { isAuthority: true })
  const names = 'DNS:localhost'
  const { certPath, keyPath } = await makeCertificate(folder, 'server', { issuer: authority, names })
  for (const path of [certPath, keyPath]) ownedByServer(path)
  chmodSync(keyPath, 0o600)
  const cluster = await startCluster({ ssl: 'on', ssl_cert_file: certPath, ssl_key_file: keyPath })
  return {
    url: await makeGuarded(cluster),
    authority: authority.certPath,
    stranger: stranger.certPath,
    /** Whether there are connections of the guarded role, and TLS encrypts all of them. */
    areAllEncrypted: () =>
      administer(cluster.url, async (sql) => {
        const [[areEncrypted] = []] = await sql
          .unsafe(`select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid)
            where usename = '${GUARDED.user}'`)
          .values()
        return areEncrypted
      }),
    [Symbol.dispose]: () => cluster[Symbol.dispose](),
  }
}
