import { constants, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { RequestOptions } from 'node:https'
import { createSecureContext, type PeerCertificate } from 'node:tls'
import { codeOf, misused, readFailure } from '../../error.ts'

/** The certificate of a server with its key, as data that a message can have. */
export type Tls = ReturnType<typeof readTls>

/** RFC 8996 forbids TLS 1.0 and 1.1. */
const SECURE_OPTIONS = constants.SSL_OP_NO_TLSv1 | constants.SSL_OP_NO_TLSv1_1
/** The suites of TLS 1.2 with forward secrecy and authenticated encryption (RFC 9325 §4.1, §4.2). TLS 1.3 has no others. */
const CIPHERS = 'ECDHE+AESGCM:ECDHE+CHACHA20'

/** Why the runtime refuses a certificate with its key. It names one reason for each of these codes. */
const REFUSALS: Readonly<Record<string, string>> = {
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the key does not belong to the first certificate',
  ERR_OSSL_X509_KEY_TYPE_MISMATCH: 'the key does not belong to the first certificate',
  ERR_OSSL_PEM_NO_START_LINE: 'there is no private key in PEM',
}

/** The runtime tries an empty password, which seems to decrypt one key in 256. For that key the error is another. */
const ENCRYPTED = /^(?:-----BEGIN |Proc-Type: 4,)ENCRYPTED/m

/** Reads a certificate, followed by its chain, and its private key, in PEM. Throws `misused` if a server cannot use the files. */
export function readTls(certPath: string, keyPath: string) {
  const { cert, own } = readCertificate(certPath)
  const key = readPem(keyPath, '--tls-key')
  const context = { cert, key, secureOptions: SECURE_OPTIONS, ciphers: CIPHERS }
  try {
    // An empty key would not be looked at.
    createSecureContext({ ...context, key: key || '\n' })
  } catch (cause) {
    const reason = ENCRYPTED.test(key)
      ? 'the key is encrypted, and a server asks nobody for its password'
      : (REFUSALS[codeOf(cause)] ?? 'a certificate or the key is damaged or of no known kind')
    throw misused(`The files ${certPath} (--tls-cert) and ${keyPath} (--tls-key) cannot be used: ${reason}.`, cause)
  }
  // The options of the runtime for TLS 1.2 and 1.3, and when the certificate ends, in milliseconds since 1970-01-01 UTC.
  return { context, validToMs: Date.parse(own.validTo) }
}

/** The text of a file with certificates, and the first of these, the server's own. Throws `misused` if there is none. */
export function readCertificate(certPath: string) {
  const cert = readPem(certPath, '--tls-cert')
  // The runtime reads PEM only, this class also DER.
  const isPem = cert.includes('-----BEGIN CERTIFICATE-----')
  try {
    return { cert, own: new X509Certificate(isPem ? cert : '') }
  } catch (cause) {
    throw misused(
      `${certPath} has no valid certificate in PEM: set --tls-cert to a file that begins with the server's own.`,
      cause,
    )
  }
}

/**
 * The options of `node:https` for `healthcheck`, which may ask the server of this machine at an address that no certificate
 * names. So the client does not compare the address: the server must show the certificate of the file, or a renewed one for the
 * same names. The client trusts the certificates of the file alone (RFC 5280 §6.1.1 leaves that choice to the verifier). Throws
 * `misused` if the file has no certificate.
 */
export function trustOnly(certPath: string): RequestOptions {
  const { cert, own } = readCertificate(certPath)
  const checkServerIdentity = (_: string, shown: PeerCertificate) => {
    const isOwn = shown.fingerprint256 === own.fingerprint256
    const isRenewed = own.subjectAltName !== undefined && shown.subjectaltname === own.subjectAltName
    return isOwn || isRenewed ? undefined : new Error('the server shows a certificate for other names')
  }
  return { ca: cert, allowPartialTrustChain: true, checkServerIdentity }
}

function readPem(path: string, flag: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch (cause) {
    throw misused(`Cannot read ${path}, which ${flag} names: ${readFailure(cause)}.`, cause)
  }
}
