import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { misused } from '../../domain/error.ts'
import type { Tls } from '../../http/tls.ts'
import { DATABASE_OPTIONS, defineCommand } from '../command.ts'

/** The command `serve` with its options. */
export const defineServe = (program: Command) =>
  defineCommand(program, 'serve', {
    does: 'Serves plants over HTTP.',
    examples: ['serve --first-token', 'serve --listen unix:/run/plantstore.sock --database plants.db'],
    exits: {
      done: 'A signal ended the server in good order.',
      failed: 'The server cannot listen at its address.',
      storeUnusable: 'The database cannot be opened, or it has failed.',
    },
    options: [
      ...DATABASE_OPTIONS,
      OPTIONS.listen,
      OPTIONS.metricsListen,
      OPTIONS.firstToken,
      OPTIONS.noDocs,
      OPTIONS.noPage,
      OPTIONS.maxBody,
      OPTIONS.listMax,
      OPTIONS.quotaPlants,
      OPTIONS.rateLimit,
      OPTIONS.idleTimeout,
      OPTIONS.tlsCert,
      OPTIONS.tlsKey,
      OPTIONS.drain,
      OPTIONS.drainWait,
      OPTIONS.logLevel,
      OPTIONS.logFormat,
      OPTIONS.accessLog,
      OPTIONS.logAddresses,
      OPTIONS.trustedProxy,
      OPTIONS.corsOrigin,
      OPTIONS.publicUrl,
    ],
  })

/** The options of `serve`. */
export type ServeOptions = ReturnType<ReturnType<typeof defineServe>['opts']> & {
  /** The certificate and the key of the server. Without them it serves plain HTTP. */
  readonly tls: Tls | undefined
}

/** Reads the certificate and the key. Rejects with `misused` if the options do not fit together or a server cannot use the files. */
export async function completeOptions(options: Omit<ServeOptions, 'tls'>): Promise<ServeOptions> {
  const { drain, drainWait, tlsCert: certPath, tlsKey: keyPath } = options
  if (drainWait >= drain && drainWait > 0)
    throw misused('--drain-wait (PLANTSTORE_DRAIN_WAIT) must be shorter than --drain.')
  if (certPath === undefined && keyPath === undefined) return { ...options, tls: undefined }
  if (certPath === undefined || keyPath === undefined)
    throw misused(
      '--tls-cert (PLANTSTORE_TLS_CERT) and --tls-key (PLANTSTORE_TLS_KEY) go together: set both or neither.',
    )
  // Only a server with TLS waits for its code to load.
  const { readTls } = await import('../../http/tls.ts')
  return { ...options, tls: readTls({ certPath, keyPath }) }
}
