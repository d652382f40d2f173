import { join } from 'node:path'
import { runProgram } from './program.ts'
import { program } from './requirement.ts'

export const OPENSSL = program('openssl')

/** The names of this machine in a certificate. */
const OWN_NAMES = 'IP:127.0.0.1,DNS:localhost'

/** The files of a certificate and of its private key. */
export interface TlsFiles {
  readonly certPath: string
  readonly keyPath: string
}

interface CertificateOptions {
  /** The names that the certificate is valid for, as OpenSSL writes them. */
  readonly names?: string
  /** The days from now until it expires; negative if it has expired. */
  readonly days?: number
  /** The issuer; without one the certificate signs itself. */
  readonly issuer?: TlsFiles
  readonly isAuthority?: boolean
}

/** Makes a certificate and its key in a folder. */
export async function makeCertificate(
  folder: string,
  name: string,
  { names = OWN_NAMES, days = 30, issuer, isAuthority = false }: CertificateOptions = {},
): Promise<TlsFiles> {
  const files = { certPath: join(folder, `${name}.crt`), keyPath: join(folder, `${name}.key`) }
  const [request, extensions] = [join(folder, `${name}.csr`), join(folder, `${name}.ext`)]
  const constraint = isAuthority ? 'basicConstraints=critical,CA:TRUE' : `subjectAltName=${names}`
  await Bun.write(extensions, `${constraint}\n`)
  await openssl('ecparam', '-out', files.keyPath, '-name', 'prime256v1', '-genkey', '-noout')
  await openssl('req', '-new', '-key', files.keyPath, '-subj', `/CN=${name}`, '-out', request)
  const signer = issuer
    ? ['-CA', issuer.certPath, '-CAkey', issuer.keyPath, '-CAcreateserial']
    : ['-signkey', files.keyPath]
  const signing = ['x509', '-req', '-in', request, ...signer, '-extfile', extensions, '-days', String(days)]
  await openssl(...signing, '-out', files.certPath)
  return files
}

/** Runs openssl without input. Rejects with its output if it fails. */
export async function openssl(...args: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runProgram(['openssl', ...args])
  if (exitCode !== 0) throw new Error(`openssl ${args.join(' ')}\n${stdout}${stderr}`)
  return stdout + stderr
}
