import { describe, test } from 'bun:test'
import { makeCertificate, OPENSSL } from '../../support/certificates.ts'
import { makeFolder } from '../../support/folder.ts'
import { lacks } from '../../support/requirement.ts'
import { expectHeaders, startWithCases } from '../support/cases.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

// test/cli/transcripts/tls.txt shows the versions, the ciphers and the certificates.
describe.skipIf(lacks(OPENSSL)).each(SOCKET_TRANSPORTS)('a service with TLS, $name', (transport) => {
  test('sends every answer with the same headers and Strict-Transport-Security', async () => {
    using folder = makeFolder()
    const { service, all } = await startWithCases(transport, { tls: await makeCertificate(folder.path, 'own') })
    await using _service = service

    await expectHeaders(service, all, { besides: () => ({ 'strict-transport-security': 'max-age=31536000' }) })
  })
})
