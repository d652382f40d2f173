import type { RequestOptions } from 'node:https'
import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { type Address, clientTarget, formatAddress } from '../../domain/address.ts'
import { AppError } from '../../domain/error.ts'
import { manual } from '../command.ts'
import type { Io } from '../io.ts'
import { toJson } from '../output.ts'

/** The command must end within 2 s. This leaves time for its start. */
const HEALTHCHECK_TIMEOUT_MS = 1700

/** `healthcheck`: asks the server whether it is ready, for containers without a shell. */
export const healthcheckCommand = (program: Command, io: Io): void => {
  program
    .command('healthcheck')
    .description('Asks /readyz of the server at --listen whether it is ready.')
    .addHelpText(
      'after',
      manual('healthcheck', 'healthcheck --listen unix:/run/plantstore.sock --json', {
        done: 'The server is ready.',
        failed: 'The server is not ready or does not answer.',
      }),
    )
    .addOption(OPTIONS.listen)
    .addOption(OPTIONS.tlsCert)
    .addOption(OPTIONS.json)
    .action(async ({ listen, tlsCert, json }) => {
      const client = await clientFor(tlsCert)
      const target = clientTarget(listen)
      const { status, cause } = await statusOf(target, client).then(
        (status) => ({ status, cause: undefined }),
        (cause: unknown) => ({ status: null, cause }),
      )
      if (json) await io.print(toJson({ isReady: status === 200, status }))
      if (status === 200) return io.tell('The server is ready.\n')
      const address = formatAddress(target, client.scheme)
      const failure = `There is no answer from ${address}: ${reasonOf(cause)}.`
      const message = status === null ? failure : `The server is not ready: ${status}.`
      throw new AppError('address_unavailable', { message, cause })
    })
}

type Client = Awaited<ReturnType<typeof clientFor>>

/** With a certificate, the server must have the same one, or one for the same names of the same authority. */
async function clientFor(certPath: string | undefined) {
  const trust: RequestOptions = {}
  if (certPath === undefined) return { ...(await import('node:http')), trust, scheme: 'http' } as const
  const { readCertificate, trustAlone } = await import('../../http/tls.ts')
  const { get } = await import('node:https')
  return { get, trust: trustAlone(readCertificate(certPath)), scheme: 'https' } as const
}

/** The status of `/readyz`. `fetch` would ask a proxy of the environment, so this does not use it. */
function statusOf(target: Address, { get, trust }: Client): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const signal = AbortSignal.timeout(HEALTHCHECK_TIMEOUT_MS)
  signal.addEventListener('abort', () => reject(signal.reason))
  get({ ...target, ...trust, path: '/readyz', signal }, (response) => {
    response.resume()
    resolve(response.statusCode ?? 0)
  }).on('error', reject)
  return promise
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error) || cause.name === 'TimeoutError') return 'it took too long'
  return 'code' in cause ? String(cause.code) : cause.message
}
