import { join } from 'node:path'
import type { TlsFiles } from '../../src/http/tls.ts'
import { runProgram } from './program.ts'
import { program } from './requirement.ts'

export const OPENSSL = program('openssl')

/** Names of the machine that the tests run on. */
const OWN_NAMES = 'IP:127.0.0.1,DNS:localhost'

interface CertificateOptions {
  /** For what the certificate holds, as OpenSSL writes it. */
  readonly names?: string
  /** In days from now; a negative number has ended. */
  readonly days?: number
  /** Who vouches for it; itself where that is nobody. */
  readonly issuer?: TlsFiles
  readonly isAuthority?: boolean
  readonly keyType?: KeyType
}

/** What a certificate signs with, as the names of ciphers say it. */
export type KeyType = 'ECDSA' | 'RSA'

/** What makes a key of each type. */
const MAKE_KEY: Readonly<Record<KeyType, readonly string[]>> = {
  ECDSA: ['ecparam', '-name', 'prime256v1', '-genkey', '-noout'],
  RSA: ['genrsa', '2048'],
}

/** Makes a certificate and its key in a folder. */
export async function makeCertificate(
  folder: string,
  name: string,
  { names = OWN_NAMES, days = 30, issuer, isAuthority = false, keyType = 'ECDSA' }: CertificateOptions = {},
): Promise<TlsFiles> {
  const files = { certPath: join(folder, `${name}.crt`), keyPath: join(folder, `${name}.key`) }
  const [request, extensions] = [join(folder, `${name}.csr`), join(folder, `${name}.ext`)]
  const constraint = isAuthority ? 'basicConstraints=critical,CA:TRUE' : `subjectAltName=${names}`
  await Bun.write(extensions, `${constraint}\n`)
  const [command = '', ...options] = MAKE_KEY[keyType]
  await openssl(command, '-out', files.keyPath, ...options)
  await openssl('req', '-new', '-key', files.keyPath, '-subj', `/CN=${name}`, '-out', request)
  const signer = issuer
    ? ['-CA', issuer.certPath, '-CAkey', issuer.keyPath, '-CAcreateserial']
    : ['-signkey', files.keyPath]
  const signing = ['x509', '-req', '-in', request, ...signer, '-extfile', extensions, '-days', String(days)]
  await openssl(...signing, '-out', files.certPath)
  return files
}

/** Runs openssl, and rejects with what it said if it failed. */
export async function openssl(...args: readonly string[]): Promise<string> {
  const { exitCode, output } = await tryOpenssl(...args)
  if (exitCode !== 0) throw new Error(`openssl ${args.join(' ')}\n${output}`)
  return output
}

/** Runs openssl to its end, with nothing to read. */
export async function tryOpenssl(...args: readonly string[]) {
  const { stdout, stderr, exitCode } = await runProgram(['openssl', ...args])
  return { exitCode, output: stdout + stderr }
}
