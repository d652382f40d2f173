import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TlsFiles } from '../../src/http/tls.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { refusal } from './support/answers.ts'

const READY = { stdout: '', stderr: 'The server is ready.\n', exitCode: 0 }
/** A name that does not lead to the server of the test. */
const ELSEWHERE = { names: 'DNS:plants.example.org' }

const serveWith = (folder: string, { certPath, keyPath }: TlsFiles, flags: readonly string[] = []) =>
  serve(join(folder, 'plantstore.db'), ['--tls-cert', certPath, '--tls-key', keyPath, ...flags])

const healthcheck = (port: number, certPath?: string) => {
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

const expectRefused = ({ stdout, stderr, exitCode }: Awaited<ReturnType<typeof healthcheck>>, reason: RegExp) => {
  expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
  expect(stderr).toMatch(/^plantstore: There is no answer from https?:\/\/[^\n]+\.\n$/)
  expect(stderr).toMatch(reason)
}

describe.skipIf(lacks(OPENSSL)).concurrent('healthcheck --tls-cert', () => {
  test('trusts the certificate of the server for any name, by flag and by variable', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own', ELSEWHERE)
    await using server = await serveWith(folder.path, own)
    const env = { PLANTSTORE_TLS_CERT: own.certPath, PLANTSTORE_LISTEN: `0.0.0.0:${server.port}` }

    expect(await healthcheck(server.port, own.certPath)).toEqual(READY)
    expect(await runPlantstore(['healthcheck'], { env })).toEqual(READY)
  })

  test('trusts the certificate at a unix socket', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own', ELSEWHERE)
    const listen = ['--listen', `unix:${join(folder.path, 'plantstore.sock')}`]
    await using _server = await serveWith(folder.path, own, listen)

    expect(await runPlantstore(['healthcheck', ...listen, '--tls-cert', own.certPath])).toEqual(READY)
  })

  test('trusts a certificate of an unknown authority, also after the file was renewed', async () => {
    using folder = makeFolder()
    const root = await makeCertificate(folder.path, 'root', { isAuthority: true })
    const old = await makeChained(folder.path, 'old', root, ELSEWHERE.names)
    const renewed = await makeChained(folder.path, 'renewed', root, ELSEWHERE.names)
    await using server = await serveWith(folder.path, old)

    // With and without those that vouch for it.
    for (const certPath of [old.certPath, join(folder.path, 'old.crt'), renewed.certPath]) {
      expect(await healthcheck(server.port, certPath)).toEqual(READY)
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

    expectRefused(await healthcheck(first.port, own.certPath), /the server shows a certificate for other names/)
    expectRefused(await healthcheck(second.port, own.certPath), /DEPTH_ZERO_SELF_SIGNED_CERT/)
    expectRefused(await healthcheck(first.port, forged.certPath), /SELF_SIGNED_CERT_IN_CHAIN/)
  })

  test('refuses a certificate that has expired, as clients do', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own', { days: -1 })
    await using server = await serveWith(folder.path, own)

    expectRefused(await healthcheck(server.port, own.certPath), /CERT_HAS_EXPIRED/)
  })

  test('exits with 1 if only one side speaks TLS', async () => {
    using folder = makeFolder()
    const own = await makeCertificate(folder.path, 'own')
    await using secure = await serveWith(folder.path, own)
    await using clear = await serve(join(folder.path, 'plantstore.db'))

    expectRefused(await healthcheck(secure.port), /./)
    expectRefused(await healthcheck(clear.port, own.certPath), /./)
  })

  test('names a missing certificate file, with exit code 2', async () => {
    using folder = makeFolder()
    const path = join(folder.path, 'nothing.crt')

    expect(await healthcheck(1, path)).toEqual(
      refusal(2, `Cannot read ${path}, which --tls-cert names: there is no such file.`),
    )
  })
})
