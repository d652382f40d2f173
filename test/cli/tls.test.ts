import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TlsFiles } from '../../src/http/tls.ts'
import { makeCertificate, OPENSSL, openssl } from '../support/certificates.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { refusalWith } from './support/answers.ts'
import { serveDatabase } from './support/database.ts'

const flagsOf = ({ certPath, keyPath }: TlsFiles) => ['--tls-cert', certPath, '--tls-key', keyPath]

/** Files that no server can use, and what the refusal of each says. */
async function makeBadFiles(folder: string): Promise<Readonly<Record<string, readonly [TlsFiles, string]>>> {
  const own = await makeCertificate(folder, 'own')
  const other = await makeCertificate(folder, 'other')
  const at = (name: string) => join(folder, name)
  const write = async (name: string, text: string) => {
    await Bun.write(at(name), text)
    return at(name)
  }
  const read = (path: string) => Bun.file(path).text()
  const damaged = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  await openssl('pkcs8', '-topk8', '-in', own.keyPath, '-passout', 'pass:secret', '-out', at('encrypted.key'))
  await openssl('pkey', '-in', own.keyPath, '-pubout', '-out', at('public.key'))
  await openssl('x509', '-in', own.certPath, '-outform', 'der', '-out', at('own.der'))
  mkdirSync(at('folder'))
  const withCert = (certPath: string): TlsFiles => ({ ...own, certPath })
  const withKey = (keyPath: string): TlsFiles => ({ ...own, keyPath })
  return {
    'a certificate that is not there': [withCert(at('nothing')), '--tls-cert names: there is no such file'],
    'a key that is not there': [withKey(at('nothing')), '--tls-key names: there is no such file'],
    'a directory for a certificate': [withCert(at('folder')), '--tls-cert names: it is a directory'],
    'an empty certificate': [withCert(await write('empty', '')), 'has no valid certificate in PEM'],
    'a certificate that is not in PEM': [withCert(at('own.der')), 'has no valid certificate in PEM'],
    'a certificate that is damaged': [withCert(await write('damaged', damaged)), 'has no valid certificate in PEM'],
    'a certificate whose chain is damaged': [
      withCert(await write('chain', (await read(own.certPath)) + damaged)),
      'is damaged or of no known kind',
    ],
    'a key that is public': [withKey(at('public.key')), 'there is no private key in PEM'],
    'a key that is encrypted': [withKey(at('encrypted.key')), 'the key is encrypted'],
    'a key of another certificate': [withKey(other.keyPath), 'does not belong to the first certificate'],
    'a chain that begins with another certificate': [
      withCert(await write('disorder', (await read(other.certPath)) + (await read(own.certPath)))),
      'does not belong to the first certificate',
    ],
    'the two, exchanged': [{ certPath: own.keyPath, keyPath: own.certPath }, 'has no valid certificate in PEM'],
  }
}

/** The SHA-256 of the certificate that a server shows. */
const shownBy = async (port: number) => {
  const certificate = await openssl('s_client', '-connect', `127.0.0.1:${port}`)
  const pem = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/.exec(certificate)?.[0] ?? ''
  return new Bun.CryptoHasher('sha256').update(pem).digest('hex')
}

const ofFile = async (path: string) =>
  new Bun.CryptoHasher('sha256').update((await Bun.file(path).text()).trim()).digest('hex')

describe.skipIf(lacks(OPENSSL))('serve --tls-cert and --tls-key', () => {
  test('refuses bad files in one line before it creates anything', async () => {
    using folder = makeFolder()

    for (const [what, [files, said]] of Object.entries(await makeBadFiles(folder.path))) {
      const database = join(folder.path, 'plantstore.db')
      const answer = await runPlantstore(['serve', '--database', database, ...flagsOf(files)])

      expect({ what, ...answer }).toEqual({ what, ...refusalWith(2, said) })
      expect([what, existsSync(database)]).toEqual([what, false])
    }
  })

  test.skipIf(lacks(SETPRIV))('refuses a key that it may not read', async () => {
    using folder = makeFolder()
    const files = await makeCertificate(folder.path, 'own')
    chmodSync(files.keyPath, 0o000)
    const serving = [...COMMAND, 'serve', '--listen', '127.0.0.1:0', ...flagsOf(files)]

    expect(await runProgram([...RESTRICTED, ...serving], { cwd: folder.path })).toEqual(
      refusalWith(2, 'this user may not read it.'),
    )
  })

  test('refuses a certificate without a key, and a key without a certificate', async () => {
    using folder = makeFolder()
    const { certPath, keyPath } = await makeCertificate(folder.path, 'own')
    const answers = await Promise.all([
      runPlantstore(['serve', '--tls-cert', certPath], { cwd: folder.path }),
      runPlantstore(['serve', '--tls-key', keyPath], { cwd: folder.path }),
      runPlantstore(['serve'], { cwd: folder.path, env: { PLANTSTORE_TLS_CERT: certPath } }),
    ])

    const rule = '--tls-cert (PLANTSTORE_TLS_CERT) and --tls-key (PLANTSTORE_TLS_KEY) go together'
    for (const answer of answers) expect(answer).toEqual(refusalWith(2, rule))
  })

  test('serves TLS with files named by variables, and logs an https address', async () => {
    using folder = makeFolder()
    const { certPath, keyPath } = await makeCertificate(folder.path, 'own')
    const env = { PLANTSTORE_TLS_CERT: certPath, PLANTSTORE_TLS_KEY: keyPath }
    await using service = await serveDatabase([], { env })
    const { server, token } = service
    const ca = await Bun.file(certPath).text()
    const answer = await fetch(`${server.address}/plants`, {
      headers: { authorization: `Bearer ${token}` },
      tls: { ca },
    })

    expect(server.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    expect([answer.status, await answer.json()]).toEqual([200, []])
  })

  test('shows a new certificate after a restart, and not before', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const files = await makeCertificate(folder.path, 'own')
    const old = await ofFile(files.certPath)
    await using first = await serve(database, flagsOf(files))
    await makeCertificate(folder.path, 'own')
    const renewed = await ofFile(files.certPath)
    const before = await shownBy(first.port)
    const exitCode = await first.end()
    await using second = await serve(database, flagsOf(files))

    expect([before, exitCode, await shownBy(second.port)]).toEqual([old, 0, renewed])
    expect(renewed).not.toBe(old)
  })
})
