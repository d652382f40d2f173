import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { REMOVED } from '../../src/config.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { refusal } from './support/answers.ts'
import { untilAccepted } from './support/connect.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'
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
  test.each([
    ['/docs', '--no-docs', 'PLANTSTORE_NO_DOCS'],
    ['/openapi.json', '--no-docs', 'PLANTSTORE_NO_DOCS'],
    ['/', '--no-page', 'PLANTSTORE_NO_PAGE'],
  ])('or a flag switches %s off, which is on by default', async (path, flag, variable) => {
    const statusWith = async (text: string, ...flags: readonly string[]) => {
      await using service = await serveDatabase(flags, { env: { [variable]: text } })
      return (await fetch(service.server.url + path, { headers: { accept: 'text/html' } })).status
    }

    expect(await statusWith('true')).toBe(404)
    expect(await statusWith('false')).toBe(200)
    expect(await statusWith('false', flag)).toBe(404)
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
    const env = { PLANTSTORE_CORS_ORIGIN: `${a},${c}` }
    const starts: [string[], Record<string, string>, string[]][] = [
      [['--cors-origin', a, '--cors-origin', `${b},${c}`], {}, [a, b, c]],
      [[], env, [a, c]],
      [['--cors-origin', b], env, [b]],
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
    const unix = join(made.folder, 'plantstore.sock')
    const { child, ended } = made.start('', 'serve', '--listen', `unix:${unix}`, '--log-level', level)
    await untilAccepted(unix, child)
    const { status } = await fetch('http://localhost/healthz', { unix })
    child.kill('SIGTERM')
    const { stdout, exitCode } = await ended

    expect({ status, exitCode }).toEqual({ status: 200, exitCode: 0 })
    expect(stdout).not.toContain('healthz')
  })
})
