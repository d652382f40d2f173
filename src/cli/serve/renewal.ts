import { platform } from 'node:os'
import type { HttpService, ServeOptions } from './http-service.ts'
import type { ServerContext } from './server-context.ts'

const DAY_MS = 86_400_000
/** From so long before its end on, a certificate is worth a warning: tools renew it earlier. */
const WARN_MS = 14 * DAY_MS
/** A thread that listens with a new certificate only later has failed to. */
const PREPARE_MAX_MS = 2000

/** Whether a listener with a renewed certificate can be opened beside the old one. Only Linux lets both accept connections. */
export const canReloadCertificate = ({ tls, listen }: ServeOptions): boolean =>
  tls !== undefined && !('socketPath' in listen) && platform() === 'linux'

/**
 * Returns what SIGHUP does. A server that can renew takes the certificate and the key that are in the files now: it opens new
 * listeners in all threads, or goes on with the old ones in all. Connections that no thread has accepted yet are reset. A
 * certificate that ends soon is a warning in the log, and one that has expired an error: now, after each renewal, and daily.
 */
export function watchCertificate({ options, threads, log, io }: ServerContext, main: HttpService): () => void {
  const { tlsCert: certPath, tlsKey: keyPath } = options
  if (certPath === undefined || keyPath === undefined)
    return () => log.info({ signal: 'SIGHUP' }, 'SIGHUP reloads no settings: restart the server to change them')

  const warn = () => {
    const endsMs = options.tls?.validToMs ?? Number.POSITIVE_INFINITY
    if (endsMs - io.nowMs() >= WARN_MS) return
    const certificateEnds = new Date(endsMs).toISOString()
    if (endsMs < io.nowMs()) log.error({ certificateEnds }, 'the certificate has expired: renew it')
    else log.warn({ certificateEnds }, 'the certificate ends within 14 days: renew it')
  }
  warn()
  setInterval(warn, DAY_MS).unref()
  if (!canReloadCertificate(options))
    return () => log.warn({ signal: 'SIGHUP' }, 'the certificate was not read again: restart the server to renew it')

  let reloading = Promise.resolve()
  const reloadCertificate = async () => {
    try {
      const { readTls } = await import('./tls.ts')
      const tls = readTls(certPath, keyPath)
      const prepared = [main.prepare(tls), threads.ask({ call: 'prepare', argument: tls }, PREPARE_MAX_MS)] as const
      const isRenewed = (await Promise.all(prepared)).flat().every((isPrepared) => isPrepared === true)
      main.settle(isRenewed)
      await threads.ask({ call: 'settle', argument: isRenewed })
      if (!isRenewed) throw new Error('a thread cannot listen or does not answer, or the server ends')
      options.tls = tls
      log.info({ signal: 'SIGHUP' }, 'new connections get the certificate that is in its file now')
      warn()
    } catch (error) {
      log.error({ signal: 'SIGHUP', reason: String(error) }, 'the certificate stays as it is')
    }
  }
  return () => {
    reloading = reloading.then(reloadCertificate)
  }
}
