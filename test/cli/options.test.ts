import { describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REMOVED } from '../../src/config.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { refusal, refusalWith } from './support/answers.ts'
import { untilAccepted } from './support/connect.ts'
import { fillDatabase, makeDatabase, serveDatabase } from './support/database.ts'
import { statusOf } from './support/service-client.ts'

const VARIABLES = {
  PLANTSTORE_MAX_BODY: '40B',
  PLANTSTORE_LIST_MAX: '1',
  PLANTSTORE_PUBLIC_URL: 'https://variable.example.org',
  PLANTSTORE_ACCESS_LOG: 'off',
  PLANTSTORE_LOG_LEVEL: 'debug',
}
const FLAGS = ['--max-body', '60B', '--list-max', '2', '--public-url', 'https://flag.example.org', '--access-log']

/** What a server with these options does: everything that one can tell them by. */
async function behaviour(flags: readonly string[], env: Record<string, string>) {
  await using service = await serveDatabase(flags, { env })
  const { server, token } = service
  const create = (id: number, bytes: number) => {
    const body = JSON.stringify({ id, name: '' })
    const padded = body.replace('""', `"${'x'.repeat(bytes - body.length)}"`)
    return server.request('POST', '/plants', { token, body: padded })
  }
  const creates = [await create(1, 40), await create(2, 41), await create(3, 60), await create(4, 61)]
  const list = await server.request('GET', '/plants', { token })
  const document = await server.request('GET', '/openapi.json')
  const [listed, documented] = [await list.text(), await document.text()]
  await server.end()
  return {
    creates: creates.map(({ status }) => status),
    listed: JSON.parse(listed).length,
    servers: JSON.parse(documented).servers,
    logsRequests: server.stdout().includes('"path":"/plants"'),
  }
}

describe.concurrent('serve refuses', () => {
  // option-rules.test.ts tries every option of every command inside the process of the test.
  test.each([
    ['a bad value', ['--max-body', '64KB'], '--max-body (PLANTSTORE_MAX_BODY) must be a size with a unit'],
    [
      'a wrong network',
      ['--trusted-proxy', '10.0.0.0/33'],
      '--trusted-proxy (PLANTSTORE_TRUSTED_PROXY) must be networks',
    ],
    ['a drain wait as long as the drain', ['--drain', '2s', '--drain-wait', '2s'], 'must be shorter than --drain.'],
  ])('%s in one line, with exit code 2', async (_, flags, message) => {
    using made = makeDatabase()

    expect(await made.run('serve', ...flags)).toEqual(refusalWith(2, message))
  })
})

describe.concurrent('an option of an earlier version', () => {
  test.each(Object.entries(REMOVED))('makes serve exit with 2, as does its variable: %s', async (flag, instead) => {
    using made = makeDatabase()
    const variable = flag.replace('--', 'PLANTSTORE_').replaceAll('-', '_').toUpperCase()
    const serveWith = (args: readonly string[], env = {}) =>
      runPlantstore(['serve', ...args], { cwd: made.folder, env })
    const removed = (name: string) => refusal(2, `There is no ${name} any more: ${instead}.`)

    const answers = await Promise.all([
      serveWith([flag, '5']),
      serveWith([`${flag}=5`]),
      serveWith([], { [variable]: '' }),
    ])

    expect(answers).toEqual([removed(flag), removed(flag), removed(variable)])
    expect(readdirSync(made.folder)).toEqual([])
  })
})

describe.concurrent('a variable', () => {
  test('of the database beats the default path', async () => {
    using folder = makeFolder()
    const create = ['token', 'create', '--user', 'me']
    await runPlantstore(create, { cwd: folder.path, env: { PLANTSTORE_DATABASE: 'variable.db' } })
    await runPlantstore(create, { cwd: folder.path })

    expect(readdirSync(folder.path).sort()).toEqual(['plantstore.db', 'variable.db'])
  })

  test.each([
    ['true', [], 404],
    ['false', [], 200],
    ['false', ['--no-docs'], 404],
  ])('that is %s with the flags %p switches the documentation, which is on by default', async (text, flags, status) => {
    await using service = await serveDatabase(flags, { env: { PLANTSTORE_NO_DOCS: text } })

    expect((await service.server.request('GET', '/docs')).status).toBe(status)
    expect((await service.server.request('GET', '/openapi.json')).status).toBe(status)
  })

  test.each([
    ['true', [], 404],
    ['false', [], 200],
    ['false', ['--no-page'], 404],
  ])('that is %s with the flags %p switches the page, which is on by default', async (text, flags, status) => {
    await using service = await serveDatabase(flags, { env: { PLANTSTORE_NO_PAGE: text } })

    expect((await fetch(service.server.url, { headers: { accept: 'text/html' } })).status).toBe(status)
  })

  test('with our prefix and without an option gets a warning, and the command goes on', async () => {
    const env = { PLANTSTORE_PORT: '3000', PLANTSTORE_LSTEN: '127.0.0.1:3000', PLANTSTORE_RATE_BURST: '5' }
    const [plain, warned] = await Promise.all([runPlantstore(['openapi']), runPlantstore(['openapi'], { env })])

    expect(warned).toMatchObject({ stdout: plain.stdout, exitCode: 0 })
    expect(warned.stderr).toMatch(
      /^[^\n]*PLANTSTORE_PORT[^\n]*\n[^\n]*PLANTSTORE_LSTEN[^\n]*\n[^\n]*PLANTSTORE_RATE_BURST[^\n]*\n$/,
    )
    expect(plain.stderr).toBe('')
  })

  test('that Kubernetes sets for a Service is ignored in silence', async () => {
    const ofService = (name: string, port: number, protocol: string) => ({
      [`${name}_SERVICE_HOST`]: '10.96.0.7',
      [`${name}_SERVICE_PORT_HTTP`]: `${port}`,
      [`${name}_PORT`]: `${protocol}://10.96.0.7:${port}`,
      [`${name}_PORT_${port}_${protocol.toUpperCase()}`]: `${protocol}://10.96.0.7:${port}`,
      [`${name}_PORT_${port}_${protocol.toUpperCase()}_PROTO`]: protocol,
      [`${name}_PORT_${port}_${protocol.toUpperCase()}_ADDR`]: '10.96.0.7',
    })
    const env = { ...ofService('PLANTSTORE', 80, 'tcp'), ...ofService('PLANTSTORE_METRICS', 9090, 'udp') }
    const { stderr, exitCode } = await runPlantstore(['openapi'], { env })

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
  })
})

describe.concurrent('the arguments of a command', () => {
  /** A database of two users, and how to run a command on it with variables that are no variables of ours. */
  const makeUsers = async () => {
    const made = await fillDatabase(1)
    const run = (...args: readonly string[]) =>
      runPlantstore(args, {
        cwd: made.folder,
        env: {
          PLANTSTORE_DATABASE: made.database,
          PLANTSTORE_YES: 'true',
          PLANTSTORE_FORCE: 'true',
          PLANTSTORE_USER: 'me',
          PLANTSTORE_SCOPE: 'read',
          PLANTSTORE_EXPIRES: '1s',
          PLANTSTORE_FROM: made.database,
          PLANTSTORE_TO: 'copy.db',
        },
      })
    return { ...made, run }
  }

  test('have no variables: without arguments nothing is deleted, revoked, replaced or copied', async () => {
    using made = await makeUsers()
    writeFileSync(join(made.folder, 'backup.db'), 'here before')
    const answers = await Promise.all([
      made.run('user', 'delete', 'me'),
      made.run('token', 'revoke'),
      made.run('token', 'create'),
      made.run('copy'),
      made.run('backup', 'backup.db'),
    ])
    const [tokens, exported] = await Promise.all([made.run('token', 'list', '--json'), made.run('export')])

    expect(answers[0]?.stderr).toContain('There is no variable PLANTSTORE_YES: it is ignored.')
    expect(answers[0]?.stderr).toEndWith('plantstore: This deletes all plants of me for good: repeat it with --yes.\n')
    expect(exported.stdout.trim().split('\n')).toHaveLength(2)
    expect(answers.map(({ exitCode }) => exitCode)).toEqual([2, 2, 2, 2, 1])
    expect(JSON.parse(tokens.stdout)).toMatchObject(Array(3).fill({ state: 'active' }))
    expect(await Bun.file(join(made.folder, 'backup.db')).text()).toBe('here before')
    expect(await Bun.file(join(made.folder, 'copy.db')).exists()).toBe(false)
  })
})

describe.concurrent('the options of serve', () => {
  test('have defaults: 64 KiB, lists without limit, no public URL, a line for each request', async () => {
    expect(await behaviour([], {})).toEqual({
      creates: [200, 200, 200, 200],
      listed: 4,
      servers: [{ url: '/' }],
      logsRequests: true,
    })
  })

  test('come from variables', async () => {
    expect(await behaviour([], VARIABLES)).toEqual({
      creates: [200, 413, 413, 413],
      listed: 1,
      servers: [{ url: 'https://variable.example.org' }],
      logsRequests: false,
    })
  })

  test('come from flags before variables', async () => {
    expect(await behaviour(FLAGS, VARIABLES)).toEqual({
      creates: [200, 200, 200, 413],
      listed: 2,
      servers: [{ url: 'https://flag.example.org' }],
      logsRequests: true,
    })
  })

  test('take origins separated by commas, repeated, or from a variable', async () => {
    const [a, b, c] = ['https://a.example.org', 'http://b.example.org:8080', 'https://c.example.org']
    const starts: [string[], Record<string, string>, string[]][] = [
      [[], {}, []],
      [['--cors-origin', `${a},${b}`], {}, [a, b]],
      [['--cors-origin', a, '--cors-origin', `${b},${c}`], {}, [a, b, c]],
      [[], { PLANTSTORE_CORS_ORIGIN: `${a},${c}` }, [a, c]],
      [['--cors-origin', b], { PLANTSTORE_CORS_ORIGIN: `${a},${c}` }, [b]],
    ]
    for (const [flags, env, shared] of starts) {
      await using service = await serveDatabase(flags, { env })
      const allowed = await Promise.all(
        [a, b, c].map(async (origin) => {
          const { headers } = await fetch(`${service.server.url}/plants`, { headers: { origin } })
          return headers.get('access-control-allow-origin') ?? []
        }),
      )

      expect([flags, allowed.flat()]).toEqual([flags, shared])
    }
  })

  test('limit the rate by flags before variables, and each process counts alone', async () => {
    const statusesOf = async (server: typeof service.server, count: number) => {
      const statuses: number[] = []
      while (statuses.length < count) statuses.push(await statusOf(server, '/plants?limit=1', service.token))
      return statuses
    }
    const env = { PLANTSTORE_RATE_LIMIT: '1/h' }
    await using service = await serveDatabase([], { env })
    await using second = await serve(service.database, ['--rate-limit', '2/h'], { env })

    expect(await statusesOf(service.server, 2)).toEqual([200, 429])
    expect(await statusesOf(second, 3)).toEqual([200, 200, 429])
    expect(await statusesOf(service.server, 1)).toEqual([429])
    // The period of the limit keeps no process alive.
    expect(await second.end()).toBe(0)
  })

  test.each(['error', 'warn'])('log no request at level %s', async (level) => {
    using made = makeDatabase()
    const socket = join(made.folder, 'plantstore.sock')
    const args = ['serve', '--listen', `unix:${socket}`, '--database', made.database, '--log-level', level]
    const { child, ended } = startProgram([...COMMAND, ...args], { env: { PATH: process.env.PATH ?? '' } })
    await untilAccepted(socket, child)
    const { status } = await fetch('http://localhost/healthz', { unix: socket })
    child.kill('SIGTERM')
    const { stdout, exitCode } = await ended

    expect({ status, exitCode }).toEqual({ status: 200, exitCode: 0 })
    expect(stdout).not.toContain('healthz')
  })
})
