import { describe, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { TlsFiles } from '../../src/http/tls.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { freePort } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { refusal } from './support/answers.ts'
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

/** A name that does not lead to the server of the test. */
const ELSEWHERE = { names: 'DNS:plants.example.org' }

const serveWith = (folder: string, { certPath, keyPath }: TlsFiles, flags: readonly string[] = []) =>
  serve(join(folder, 'plantstore.db'), ['--tls-cert', certPath, '--tls-key', keyPath, ...flags])

const healthcheckTls = (port: number, certPath?: string) => {
  const trust = certPath === undefined ? [] : ['--tls-cert', certPath]
  return runPlantstore(['healthcheck', '--listen', `127.0.0.1:${port}`, ...trust])
}

/** A certificate with the one that vouches for it in its file, as authorities hand them out. */
async function makeChained(folder: string, name: string, issuer: TlsFiles, names: string): Promise<TlsFiles> {
  const { certPath, keyPath } = await makeCertificate(folder, name, { issuer, names })
  const chain = join(folder, `${name}-chain.crt`)
  await Bun.write(chain, (await Bun.file(certPath).text()) + (await Bun.file(issuer.certPath).text()))
  return { certPath: chain, keyPath }
}

const expectRefused = ({ stdout, stderr, exitCode }: Awaited<ReturnType<typeof healthcheckTls>>, reason: RegExp) => {
  expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
  expect(stderr).toMatch(/^plantstore: There is no answer from (?:https?:\/\/|unix:)[^\n]+\.\n$/)
  expect(stderr).toMatch(reason)
}

describe.skipIf(lacks(OPENSSL)).concurrent('healthcheck --tls-cert', () => {
  test('trusts the certificate of the server for any name, by flag and by variable', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own', ELSEWHERE)
    await using server = await serveWith(folder.path, own)
    const env = { PLANTSTORE_TLS_CERT: own.certPath, PLANTSTORE_LISTEN: `0.0.0.0:${server.port}` }

    expect(await healthcheckTls(server.port, own.certPath)).toEqual(READY)
    expect(await runPlantstore(['healthcheck'], { env })).toEqual(READY)
  })

  test('trusts the certificate at a unix socket', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own', ELSEWHERE)
    const listen = ['--listen', `unix:${join(folder.path, 'plantstore.sock')}`]
    await using _server = await serveWith(folder.path, own, listen)

    expect(await runPlantstore(['healthcheck', ...listen, '--tls-cert', own.certPath])).toEqual(READY)
    expectRefused(await runPlantstore(['healthcheck', ...listen]), /sock, because it speaks TLS: add --tls-cert\.$/m)
  })

  test('trusts a certificate of an unknown authority, also after the file was renewed', async () => {
    using folder = makeFolder()
    const root = await makeCertificate(folder.path, 'root', { isAuthority: true })
    const old = await makeChained(folder.path, 'old', root, ELSEWHERE.names)
    const renewed = await makeChained(folder.path, 'renewed', root, ELSEWHERE.names)
    await using server = await serveWith(folder.path, old)

    // With and without those that vouch for it.
    for (const certPath of [old.certPath, join(folder.path, 'old.crt'), renewed.certPath]) {
      expect(await healthcheckTls(server.port, certPath)).toEqual(READY)
    }
  })

  test('refuses a server with a self-signed certificate, or one of the same authority for another name', async () => {
    using folder = makeFolder()
    const root = await makeCertificate(folder.path, 'root', { isAuthority: true })
    const own = await makeChained(folder.path, 'own', root, ELSEWHERE.names)
    const neighbour = await makeChained(folder.path, 'neighbour', root, 'DNS:other.example.org')
    const forged = await makeCertificate(folder.path, 'forged', ELSEWHERE)
    await using first = await serveWith(folder.path, neighbour)
    await using second = await serveWith(folder.path, forged)

    expectRefused(await healthcheckTls(first.port, own.certPath), /the server shows a certificate for other names/)
    expectRefused(await healthcheckTls(second.port, own.certPath), /DEPTH_ZERO_SELF_SIGNED_CERT/)
    expectRefused(await healthcheckTls(first.port, forged.certPath), /SELF_SIGNED_CERT_IN_CHAIN/)
  })

  test('refuses a certificate that has expired, as clients do', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own', { days: -1 })
    await using server = await serveWith(folder.path, own)

    expectRefused(await healthcheckTls(server.port, own.certPath), /CERT_HAS_EXPIRED/)
  })

  test('says whether to add --tls-cert or to leave it out if only one side speaks TLS', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own')
    await using secure = await serveWith(folder.path, own)
    await using clear = await serve(join(folder.path, 'plantstore.db'))

    expectRefused(await healthcheckTls(secure.port), /:\d+, because it speaks TLS: add --tls-cert\.$/m)
    expectRefused(
      await healthcheckTls(clear.port, own.certPath),
      /:\d+, because it does not speak TLS: leave out --tls-cert\.$/m,
    )
  })

  test('names a missing certificate file, with exit code 2', async () => {
    using folder = makeFolder()
    const path = join(folder.path, 'nothing.crt')

    expect(await healthcheckTls(1, path)).toEqual(
      refusal(2, `Cannot read ${path}, which --tls-cert names: there is no such file.`),
    )
  })
})
