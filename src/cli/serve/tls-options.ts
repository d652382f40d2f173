import { AppError } from '../../domain/error.ts'
import type { Tls } from '../../http/tls.ts'
import type { Logger } from '../../log.ts'
import type { ServeOptions } from './options.ts'

/** The certificate and the key that the options name, if they name any. Rejects with `misused` if a server cannot use them. */
export async function tlsOf({ tlsCert, tlsKey }: Pick<ServeOptions, 'tlsCert' | 'tlsKey'>): Promise<Tls | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined) {
    const message =
      '--tls-cert (PLANTSTORE_TLS_CERT) and --tls-key (PLANTSTORE_TLS_KEY) go together: set both or neither.'
    throw new AppError('misused', { message })
  }
  // Only a server with TLS waits for its code to load.
  const { readTls } = await import('../../http/tls.ts')
  return readTls({ certPath: tlsCert, keyPath: tlsKey })
}

/** Logs a warning if the certificate is not valid now: then clients will refuse it. */
export function warnOfValidity({ validFromMs, validToMs }: Tls, nowMs: number, log: Logger): void {
  if (nowMs >= validFromMs && nowMs <= validToMs) return
  const [from, to] = [validFromMs, validToMs].map((ms) => new Date(ms).toISOString())
  log.warn({ from, to }, 'the certificate is not valid now: clients will refuse it')
}
