import type { Logger } from '../../log.ts'
import type { ServeOptions, startAnswering } from './answering.ts'
import type { Threads } from './threads.ts'

export interface RenewalParts {
  readonly options: ServeOptions
  readonly threads: Threads
  readonly log: Logger
}

type MainThread = Pick<Awaited<ReturnType<typeof startAnswering>>, 'prepare' | 'settle'>

/**
 * Returns what SIGHUP does. A server whose threads share an address takes the certificate and the key that are in the files now: it
 * opens new listeners in all threads, or goes on with the old ones in all. Connections that no thread has accepted yet are reset.
 */
export function renewal({ options, threads, log }: RenewalParts, main: MainThread): () => void {
  const { tlsCert: certPath, tlsKey: keyPath } = options
  if (certPath === undefined || keyPath === undefined || options.threads === 1)
    return () => log.info({ signal: 'SIGHUP' }, 'SIGHUP reloads no settings: restart the server to change them')

  let renewing = Promise.resolve()
  const renew = async () => {
    try {
      const { readTls } = await import('../../http/tls.ts')
      const tls = readTls({ certPath, keyPath })
      const prepared = [main.prepare(tls), threads.ask({ call: 'prepare', argument: tls })] as const
      const isRenewed = (await Promise.all(prepared)).flat().every((isPrepared) => isPrepared === true)
      main.settle(isRenewed)
      await threads.ask({ call: 'settle', argument: isRenewed })
      if (!isRenewed) throw new Error('a thread cannot listen, or the server ends')
      options.tls = tls
      log.info({ signal: 'SIGHUP' }, 'new connections get the certificate that is in its file now')
    } catch (error) {
      log.error({ signal: 'SIGHUP', reason: String(error) }, 'the certificate stays as it is')
    }
  }
  return () => {
    renewing = renewing.then(renew)
  }
}
