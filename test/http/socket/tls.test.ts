import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type KeyType, makeCertificate, OPENSSL, tryOpenssl } from '../../support/certificates.ts'
import { makeFolder } from '../../support/folder.ts'
import { exchange } from '../../support/raw-connection.ts'
import { lacks } from '../../support/requirement.ts'
import { expectHeaders, startWithCases } from '../support/cases.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

/** A handshake with a server. Allows each version of TLS every cipher that OpenSSL has. */
const shakeHands = (port: number, ...args: readonly string[]) =>
  tryOpenssl('s_client', '-connect', `127.0.0.1:${port}`, '-cipher', 'ALL:@SECLEVEL=0', ...args)

describe.skipIf(lacks(OPENSSL)).each(SOCKET_TRANSPORTS)('a service with TLS, $name', (transport) => {
  test('sends every answer with the same headers and Strict-Transport-Security', async () => {
    using folder = makeFolder()
    const { service, all } = await startWithCases(transport, { tls: await makeCertificate(folder.path, 'own') })
    await using _service = service

    await expectHeaders(service, all, { besides: () => ({ 'strict-transport-security': 'max-age=31536000' }) })
  })

  test('speaks TLS 1.2 and 1.3, no older version, and nothing in clear', async () => {
    using folder = makeFolder()
    await using service = await startService(transport, { tls: await makeCertificate(folder.path, 'own') })
    const answers = {
      tls1_2: 'New, TLSv1.2',
      tls1_3: 'New, TLSv1.3',
      tls1: 'protocol version',
      tls1_1: 'protocol version',
    }

    for (const [version, output] of Object.entries(answers))
      expect([version, (await shakeHands(service.port, `-${version}`)).output]).toEqual([
        version,
        expect.stringContaining(output),
      ])
    const { text, isClosed } = await exchange(service.port, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
    expect({ text, isClosed }).toEqual({ text: '', isClosed: true })
  })

  test.each<KeyType>(['RSA', 'ECDSA'])(
    'speaks TLS 1.2 with forward secrecy and authenticated encryption only, with a certificate for %s',
    async (keyType) => {
      using folder = makeFolder()
      await using service = await startService(transport, {
        tls: await makeCertificate(folder.path, 'own', { keyType }),
      })
      const offer = (ciphers: string) => shakeHands(service.port, '-tls1_2', '-cipher', `${ciphers}:@SECLEVEL=0`)
      const taken = ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map(
        (cipher) => `ECDHE-${keyType}-${cipher}`,
      )
      const others = `ALL:${taken.map((cipher) => `!${cipher}`).join(':')}`

      const refused = ['AES128-SHA', 'AES128-GCM-SHA256', `ECDHE-${keyType}-AES128-SHA`, others]
      for (const cipher of [...taken, ...refused]) {
        const expected = taken.includes(cipher) ? [0, `Cipher is ${cipher}`] : [1, 'alert handshake failure']
        const { exitCode, output } = await offer(cipher)
        expect([cipher, exitCode, output]).toEqual([cipher, expected[0], expect.stringContaining(String(expected[1]))])
      }
    },
  )

  test('sends the chain of certificates that vouches for its own', async () => {
    using folder = makeFolder()
    const root = await makeCertificate(folder.path, 'root', { isAuthority: true })
    const issuer = await makeCertificate(folder.path, 'issuer', { issuer: root, isAuthority: true })
    const own = await makeCertificate(folder.path, 'own', { issuer })
    const chain = { certPath: join(folder.path, 'chain.crt'), keyPath: own.keyPath }
    await Bun.write(chain.certPath, (await Bun.file(own.certPath).text()) + (await Bun.file(issuer.certPath).text()))
    await using whole = await startService(transport, { tls: chain })
    await using alone = await startService(transport, { tls: own })
    const verify = ['-CAfile', root.certPath, '-verify_return_error', '-verify_ip', '127.0.0.1']

    expect((await shakeHands(whole.port, ...verify)).output).toContain('Verify return code: 0 (ok)')
    expect((await shakeHands(alone.port, ...verify)).exitCode).toBe(1)
  })
})
