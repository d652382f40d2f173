import { AppError } from '../../domain/error.ts'
import type { Tls } from '../../http/tls.ts'
import type { Logger } from '../../log.ts'

interface TlsOptions {
  readonly tlsCert?: string
  readonly tlsKey?: string
}

/** The certificate and key that the options name, or none. Rejects with `misused` where they are not what a server needs. */
export async function tlsOf({ tlsCert, tlsKey }: TlsOptions): Promise<Tls | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined) {
    const message =
      '--tls-cert (PLANTSTORE_TLS_CERT) and --tls-key (PLANTSTORE_TLS_KEY) go together: set both or neither.'
    throw new AppError('misused', { message })
  }
  // What TLS takes to load is not for those who do without.
  const { readTls } = await import('../../http/tls.ts')
  return readTls({ certPath: tlsCert, keyPath: tlsKey })
}

/** Clients will refuse a certificate that does not hold now: the operator should hear of it first. */
export function warnOfValidity({ validFromMs, validToMs }: Tls, nowMs: number, log: Logger): void {
  if (nowMs >= validFromMs && nowMs <= validToMs) return
  const [from, to] = [validFromMs, validToMs].map((ms) => new Date(ms).toISOString())
  log.warn({ from, to }, 'the certificate does not hold now: clients will refuse it')
}
