import { describe, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { freePort } from '../support/postgres-system.ts'
import { SLACK_MS } from '../support/slack.ts'
import { serveDatabase } from './support/database.ts'

/** The promise, without the start of the process. */
const HEALTHCHECK_LIMIT_MS = 2000

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)

const healthcheck = (listen: string, env: Record<string, string> = {}) =>
  runPlantstore(['healthcheck', '--listen', listen], { env })

const READY = { stdout: '', stderr: 'The server is ready.\n', exitCode: 0 }

describe('healthcheck', () => {
  test('exits with 0 if the server is ready, at its own address and at a wildcard address', async () => {
    await using service = await serveDatabase()
    const { port } = service.server
    const answers = await Promise.all([
      healthcheck(`127.0.0.1:${port}`),
      healthcheck(`0.0.0.0:${port}`),
      healthcheck(`localhost:${port}`),
      runPlantstore(['healthcheck'], { env: { PLANTSTORE_LISTEN: `0.0.0.0:${port}` } }),
    ])

    expect(answers).toEqual([READY, READY, READY, READY])
  })

  test.skipIf(!hasIpv6)(`reaches IPv6${hasIpv6 ? '' : ' (skipped: there is no ::1)'}`, async () => {
    await using service = await serveDatabase(['--listen', '[::1]:0'])
    const hosts = ['[::1]', '[::]', '[0:0:0:0:0:0:0:0]']
    const answers = await Promise.all(hosts.map((host) => healthcheck(`${host}:${service.server.port}`)))

    expect(answers).toEqual([READY, READY, READY])
  })

  test('reaches a unix socket', async () => {
    using folder = makeFolder()
    const listen = `unix:${join(folder.path, 'plantstore.sock')}`
    await using server = await serve(join(folder.path, 'plantstore.db'), ['--listen', listen])
    const answer = await healthcheck(listen)
    await server.kill()

    expect(answer).toEqual(READY)
    expect(await healthcheck(listen)).toMatchObject({ exitCode: 1 })
  })

  test('prints with --json whether a server is ready and its status, and exits with 1 if it is not ready', async () => {
    const asked: string[] = []
    const startAnswering = (answer: () => Response) =>
      Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch({ method, url }) {
          asked.push(`${method} ${new URL(url).pathname}`)
          return answer()
        },
      })
    using notReady = startAnswering(() => new Response(null, { status: 503 }))
    using redirecting = startAnswering(() => Response.redirect('/healthz'))
    await using service = await serveDatabase()
    const ports = [service.server.port, notReady.port, redirecting.port, freePort(), 0]
    const addresses = [...ports.map((port) => `127.0.0.1:${port}`), `unix:${service.folder}/nothing.sock`]
    const answers = await Promise.all(
      addresses.map((address) => runPlantstore(['healthcheck', '--json', '--listen', address])),
    )

    expect(answers.map(({ stdout, exitCode }) => ({ ...JSON.parse(stdout), exitCode }))).toEqual([
      { isReady: true, status: 200, exitCode: 0 },
      { isReady: false, status: 503, exitCode: 1 },
      { isReady: false, status: 302, exitCode: 1 },
      { isReady: false, status: null, exitCode: 1 },
      { isReady: false, status: null, exitCode: 1 },
      { isReady: false, status: null, exitCode: 1 },
    ])
    for (const { stderr } of answers.slice(1)) expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
    expect(asked).toEqual(['GET /readyz', 'GET /readyz'])
  })

  test('exits with 1 within 2 s if a server answers nothing or half an answer', async () => {
    const parts = ['', 'HTTP/1.1 200 OK\r\nContent-', 'HTTP/1.1 503 Unavailable\r\nContent-Length: 100\r\n\r\n{"err']
    const outcomes = await Promise.all(
      parts.map(async (part) => {
        using hanging = Bun.listen({
          hostname: '127.0.0.1',
          port: 0,
          socket: {
            open(socket) {
              socket.write(part)
            },
            data() {},
          },
        })
        const startMs = performance.now()
        const { stdout, exitCode } = await healthcheck(`127.0.0.1:${hanging.port}`)
        return { stdout, exitCode, isInTime: performance.now() - startMs < HEALTHCHECK_LIMIT_MS + SLACK_MS }
      }),
    )

    expect(outcomes).toEqual(parts.map(() => ({ stdout: '', exitCode: 1, isInTime: true })))
  })

  test('asks no proxy of the environment', async () => {
    await using service = await serveDatabase()
    let connections = 0
    using proxy = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        open() {
          connections++
        },
        data() {},
      },
    })
    const url = `http://127.0.0.1:${proxy.port}`
    const env = { HTTP_PROXY: url, http_proxy: url, HTTPS_PROXY: url, https_proxy: url, ALL_PROXY: url, all_proxy: url }

    expect(await healthcheck(`127.0.0.1:${service.server.port}`, env)).toEqual(READY)
    expect(connections).toBe(0)
  })
})
