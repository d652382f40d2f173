import { describe, expect, test } from 'bun:test'
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { administer, freePort, GUARDED, OWN_POSTGRES, ownedByServer, startCluster } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { OUTPUTS } from './support/outputs.ts'
import { statusOf } from './support/service-client.ts'

describe.skipIf(lacks(OWN_POSTGRES))('a server whose database', () => {
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
    for (const name of ['answers', 'log', 'stderr', 'process'] as const) {
      expect([name, (await OUTPUTS[name]?.(used))?.includes(GUARDED.password)]).toEqual([name, false])
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

  test.skipIf(lacks(OPENSSL))('is who its certificate says is believed, and nobody else', async () => {
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
  })

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

  const copying = await runPlantstore([
    'copy',
    '--from',
    'missing.db',
    '--to',
    'postgres://me:Sesame-99@192.0.2.1/plants',
  ])

  expect(copying.stderr).toStartWith(
    'Warning: plants and tokens may go to postgres://me@192.0.2.1:5432/plants in plain text',
  )
  expect(await warnings('192.0.2.1/plants')).toBe(1)
  expect(await warnings('192.0.2.1/plants?sslmode=disable')).toBe(1)
  expect(await warnings('192.0.2.1/plants?sslmode=require')).toBe(0)
  expect(await warnings(`127.0.0.1:${port}/plants`)).toBe(0)
  expect(await warnings(`localhost:${port}/plants?sslmode=disable`)).toBe(0)
})

describe.concurrent('a mistyped URL of a database', () => {
  /** The outcome of a command, and whether it told or made anything of the URL. */
  const refusal = async (args: readonly string[], env: Record<string, string> = {}) => {
    using folder = makeFolder()
    const { stdout, stderr, exitCode } = await runPlantstore(args, { cwd: folder.path, env })
    const isOneLine = /^plantstore: [^\n]+\n$/.test(stderr)
    return { stdout, isOneLine, exitCode, isTold: /Sesame|wrong/.test(stderr), files: readdirSync(folder.path) }
  }
  const REFUSED = { stdout: '', isOneLine: true, exitCode: 2, isTold: false, files: [] }

  // test/cli/option-rules.test.ts tries all of MISTYPED_URLS without a process for each.
  test.each([
    'postgres://wrong@host/plants?password=Sesame-99',
    'postgres://wrong:Sesame-99%40host/plants',
    ' postgres://wrong:Sesame-99@host/plants',
    'postgress://wrong:Sesame-99@host/plants',
    'mysql://wrong:Sesame-99@host/plants',
    'host=host user=wrong password=Sesame-99',
  ])('is refused and not repeated: %s', async (url) => {
    const answers = await Promise.all([
      refusal(['serve', '--database', url]),
      refusal(['serve'], { PLANTSTORE_DATABASE: url }),
    ])

    expect(answers).toEqual([REFUSED, REFUSED])
  })

  test.each([
    ['token create --user me --database'],
    ['token list --json --database'],
    ['status --json --database'],
    ['copy --to plants.db --from'],
    ['copy --from plants.db --to'],
    ['check --databse'],
    ['check'],
  ])('is not repeated by plantstore %s', async (command) => {
    const args = command.split(' ')
    const answers = await Promise.all([
      refusal([...args, 'postgress://wrong:Sesame-99@host/plants']),
      refusal([...args.slice(0, -1), `${args.at(-1)}=mysql://wrong@host/plants?password=Sesame-99`]),
      // Without quotes a shell makes words of it.
      refusal([...args, 'host=host', 'user=wrong', 'password=Sesame-99']),
    ])

    expect(answers).toEqual([REFUSED, REFUSED, REFUSED])
  })

  test.each(['restore', 'import', 'backup --dir'])('is told without its password by plantstore %s', async (command) => {
    const { stderr, exitCode } = await runPlantstore([...command.split(' '), 'postgres://me:Sesame-99@host/plants'])

    expect(exitCode).not.toBe(0)
    expect(stderr).toContain('me:***@host/plants')
    expect(stderr).not.toContain('Sesame')
  })

  test('that is a valid URL of no server is told without its password', async () => {
    const host = `127.0.0.1:${freePort()}`
    const { stderr, exitCode } = await runPlantstore(['check', '--database', `postgres://me:Sesame-99@${host}/plants`])

    expect(exitCode).toBe(3)
    expect(stderr).toStartWith(`plantstore: The database postgres://me@${host}/plants cannot be reached: `)
    expect(stderr).not.toContain('Sesame')
  })

  test('is no path: a path that cannot be used is told', async () => {
    const { stderr, exitCode } = await runPlantstore(['check', '--database', '/nowhere/at all/plants.db'])

    expect(exitCode).toBe(3)
    expect(stderr).toContain('/nowhere/at all')
  })
})
