import type { RequestOptions } from 'node:https'
import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { type Address, clientTarget, formatAddress } from '../../domain/address.ts'
import { AppError } from '../../domain/error.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { toJson } from '../output.ts'

/** The command must end within 2 s. This leaves time for its start. */
const HEALTHCHECK_TIMEOUT_MS = 1700

/** `healthcheck`: asks the server whether it is ready, for containers without a shell. */
export const healthcheckCommand = (program: Command, io: Io): void => {
  defineCommand(program, 'healthcheck', {
    does: 'Asks /readyz of the server at --listen whether it is ready.',
    examples: ['healthcheck', 'healthcheck --listen unix:/run/plantstore.sock --json'],
    exits: {
      done: 'The server is ready.',
      failed: 'The server is not ready or does not answer.',
    },
    options: [OPTIONS.listen, OPTIONS.tlsCert, OPTIONS.json],
  }).action(async ({ listen, tlsCert, json }) => {
    const client = await clientFor(tlsCert)
    const target = clientTarget(listen)
    const signal = AbortSignal.timeout(HEALTHCHECK_TIMEOUT_MS)
    const answer = await askReadiness(target, client, signal)
    const status = answer instanceof Error ? null : answer
    if (json) await io.print(toJson({ isReady: status === 200, status }))
    if (status === 200) return io.tell('The server is ready.')
    const message =
      answer instanceof Error
        ? `There is no answer from ${formatAddress(target, client.scheme)}${await whyNone(answer, target, client, signal)}.`
        : `The server is not ready: ${status}.`
    throw new AppError('address_unavailable', { message, cause: answer })
  })
}

/** With a certificate, the server must have the same one, or one for the same names of the same authority. */
async function clientFor(certPath: string | undefined) {
  const trust: RequestOptions = {}
  if (certPath === undefined) return { ...(await import('node:http')), trust, scheme: 'http' } as const
  const { readCertificate, trustAlone } = await import('../../http/tls.ts')
  const { get } = await import('node:https')
  return { get, trust: trustAlone(readCertificate(certPath)), scheme: 'https' } as const
}

type Client = Pick<Awaited<ReturnType<typeof clientFor>>, 'get' | 'trust'>

/** The status of `/readyz`, or why there is none. `fetch` would ask a proxy of the environment, so this does not use it. */
function askReadiness(target: Address, { get, trust }: Client, signal: AbortSignal): Promise<number | Error> {
  const { promise, resolve } = Promise.withResolvers<number | Error>()
  signal.addEventListener('abort', () => resolve(signal.reason))
  get({ ...target, ...trust, path: '/readyz', signal }, (response) => {
    response.resume()
    resolve(response.statusCode ?? 0)
  }).on('error', resolve)
  return promise
}

/** Ends the sentence that says that there is no answer. Finds out whether the server would answer with TLS, or without. */
async function whyNone(error: Error, target: Address, { scheme }: { readonly scheme: string }, signal: AbortSignal) {
  if (error.name === 'TimeoutError') return ': it took too long'
  const { get } = scheme === 'http' ? await import('node:https') : await import('node:http')
  const other = await askReadiness(target, { get, trust: { rejectUnauthorized: false } }, signal)
  if (other instanceof Error) return `: ${'code' in error ? String(error.code) : error.message}`
  return scheme === 'http'
    ? ', because it speaks TLS: add --tls-cert'
    : ', because it does not speak TLS: leave out --tls-cert'
}
