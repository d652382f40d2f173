import { describe, expect, test } from 'bun:test'
import { makeCertificate, OPENSSL } from '../../support/certificates.ts'
import { makeFolder } from '../../support/folder.ts'
import { AUDIENCE, startIssuer } from '../../support/issuer.ts'
import { lacks } from '../../support/requirement.ts'
import { expectHeaders, startWithCases } from '../support/cases.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

// test/cli/transcripts/tls.txt shows the versions, the ciphers and the certificates.
describe.skipIf(lacks(OPENSSL)).each(SOCKET_TRANSPORTS)('a service with TLS, $name', (transport) => {
  test('sends every answer with the same headers and Strict-Transport-Security', async () => {
    using folder = makeFolder()
    const { service, all } = await startWithCases(transport, { tls: await makeCertificate(folder.path, 'own') })
    await using _service = service

    await expectHeaders(service, all, { besides: () => ({ 'strict-transport-security': 'max-age=31536000' }) })
  })

  test('names its address with https to clients of an identity provider', async () => {
    using folder = makeFolder()
    await using provider = await startIssuer()
    const jwt = { issuer: provider.issuer, audience: AUDIENCE }
    await using service = await startService(transport, { tls: await makeCertificate(folder.path, 'own'), jwt })

    const { headers } = await service.list('', { token: null })
    const origin = `https://127.0.0.1:${service.port}`
    expect(headers.get('www-authenticate')).toContain(`resource_metadata="${origin}/.well-known/`)
  })
})
