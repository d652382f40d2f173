import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { COMMAND, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { untilAccepted } from './support/connect.ts'
import { serveDatabase } from './support/database.ts'

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

/** Starts a server that does not say where it listens. */
async function startQuietly(args: readonly string[], socket: string) {
  const env = { PATH: process.env.PATH ?? '' }
  const { child, ended } = startProgram([...COMMAND, ...args], { env })
  await untilAccepted(socket, child)
  return () => {
    child.kill('SIGTERM')
    return ended
  }
}

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
      using folder = makeFolder()
      await using server = await serve(join(folder.path, 'plantstore.db'), flags, { env })
      const allowed = await Promise.all(
        [a, b, c].map(async (origin) => {
          const { headers } = await fetch(`${server.url}/plants`, { headers: { origin } })
          return headers.get('access-control-allow-origin') ?? []
        }),
      )

      expect([flags, allowed.flat()]).toEqual([flags, shared])
    }
  })

  test.each(['error', 'warn'])('log no request at level %s', async (level) => {
    using folder = makeFolder()
    const socket = join(folder.path, 'plantstore.sock')
    const args = ['serve', '--listen', `unix:${socket}`, '--database', join(folder.path, 'plantstore.db')]
    const end = await startQuietly([...args, '--log-level', level], socket)
    const { status } = await fetch('http://localhost/healthz', { unix: socket })
    const { stdout, exitCode } = await end()

    expect({ status, exitCode }).toEqual({ status: 200, exitCode: 0 })
    expect(stdout).not.toContain('healthz')
  })
})
