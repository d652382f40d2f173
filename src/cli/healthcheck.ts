import { get } from 'node:http'
import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { type Address, clientTarget, formatAddress } from '../domain/address.ts'
import { AppError } from '../domain/error.ts'
import type { Io } from './io.ts'

/** A little under the 2 s after which the command must have ended. */
const HEALTHCHECK_TIMEOUT_MS = 1700

/** `healthcheck`: asks `/readyz`, for containers without a shell. */
export const healthcheckCommand = (program: Command, io: Io): void => {
  program
    .command('healthcheck')
    .description('ask /readyz of the server at --listen; exit code 0 or 1')
    .addOption(OPTIONS.listen())
    .action(async ({ listen }: { readonly listen: Address }) => {
      const status = await readiness(listen)
      if (status !== 200) throw new AppError('address_unavailable', { message: `The server is not ready: ${status}.` })
      await io.tell('The server is ready.\n')
    })
}

/** The status of `/readyz`. Not by `fetch`, which would ask a proxy of the environment. */
async function readiness(address: Address): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const signal = AbortSignal.timeout(HEALTHCHECK_TIMEOUT_MS)
  signal.addEventListener('abort', () => reject(signal.reason))
  const target = clientTarget(address)
  get({ ...target, path: '/readyz', signal }, (response) => {
    response.resume()
    resolve(response.statusCode ?? 0)
  }).on('error', reject)
  try {
    return await promise
  } catch (cause) {
    throw new AppError('address_unavailable', {
      message: `There is no answer from ${formatAddress(target)}: ${reasonOf(cause)}.`,
      cause,
    })
  }
}

const reasonOf = (cause: unknown): string =>
  cause instanceof Error && 'code' in cause && cause.name !== 'TimeoutError' ? String(cause.code) : 'it took too long'
