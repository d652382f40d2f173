import type { Command } from '@commander-js/extra-typings'
import { OPTIONS, type OptionsOf } from '../../config.ts'
import type { Tls } from '../../http/tls.ts'
import { addDatabaseOptions, manual, misused } from '../command.ts'

/** The command `serve` with its options. */
export const defineServe = (program: Command) =>
  addDatabaseOptions(program.command('serve'))
    .description('Serves plants over HTTP.')
    .addHelpText(
      'after',
      manual('serve --first-token', 'serve --listen unix:/run/plantstore.sock --database plants.db', {
        done: 'A signal ended the server in good order.',
        failed: 'The server cannot listen at its address.',
        storeUnusable: 'The database cannot be opened, or it has failed.',
      }),
    )
    .addOption(OPTIONS.listen)
    .addOption(OPTIONS.metricsListen)
    .addOption(OPTIONS.firstToken)
    .addOption(OPTIONS.tokensFile)
    .addOption(OPTIONS.noDocs)
    .addOption(OPTIONS.noPage)
    .addOption(OPTIONS.maxBody)
    .addOption(OPTIONS.listMax)
    .addOption(OPTIONS.quotaPlants)
    .addOption(OPTIONS.rateLimit)
    .addOption(OPTIONS.rateBurst)
    .addOption(OPTIONS.maxInFlight)
    .addOption(OPTIONS.idleTimeout)
    .addOption(OPTIONS.tlsCert)
    .addOption(OPTIONS.tlsKey)
    .addOption(OPTIONS.drain)
    .addOption(OPTIONS.drainWait)
    .addOption(OPTIONS.logLevel)
    .addOption(OPTIONS.logFormat)
    .addOption(OPTIONS.accessLog)
    .addOption(OPTIONS.logAddresses)
    .addOption(OPTIONS.trustedProxy)
    .addOption(OPTIONS.corsOrigin)
    .addOption(OPTIONS.publicUrl)

/** The options of `serve`. */
export type ServeOptions = OptionsOf<ReturnType<typeof defineServe>> & {
  /** The certificate and the key of the server. Without them it serves plain HTTP. */
  readonly tls: Tls | undefined
}

/** Reads the certificate and the key. Rejects with `misused` if the options do not fit together or a server cannot use the files. */
export async function completeOptions(options: Omit<ServeOptions, 'tls'>): Promise<ServeOptions> {
  const { drain, drainWait, rateLimit, rateBurst, tlsCert: certPath, tlsKey: keyPath } = options
  if (drainWait >= drain && drainWait > 0)
    throw misused('--drain-wait (PLANTSTORE_DRAIN_WAIT) must be shorter than --drain.')
  if (rateBurst !== undefined && rateLimit === undefined)
    throw misused('--rate-burst (PLANTSTORE_RATE_BURST) needs --rate-limit.')
  if (certPath === undefined && keyPath === undefined) return { ...options, tls: undefined }
  if (certPath === undefined || keyPath === undefined)
    throw misused(
      '--tls-cert (PLANTSTORE_TLS_CERT) and --tls-key (PLANTSTORE_TLS_KEY) go together: set both or neither.',
    )
  // Only a server with TLS waits for its code to load.
  const { readTls } = await import('../../http/tls.ts')
  return { ...options, tls: readTls({ certPath, keyPath }) }
}
