// Tested in test/cli/transcripts/listen.txt.
import type { RequestOptions } from 'node:https'
import type { Command } from '@commander-js/extra-typings'
import { clientTarget, formatAddress } from '../../address.ts'
import { AppError, codeOf, readFailure } from '../../error.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { toJson } from '../output.ts'

/** Without --wait the command must end within 2 s. This leaves time for its start. */
const HEALTHCHECK_TIMEOUT_MS = 1700
/** How long --wait waits before it asks again. */
const PAUSE_MS = 50
/** In the journal, this stands behind the line of the server. */
const HAS_ENDED = 'The server has ended: the line before this one says why.'

/** `healthcheck`: asks the server whether it is ready, for containers without a shell. */
export const healthcheckCommand = (program: Command, io: Io) =>
  defineCommand(program, 'healthcheck', {
    does: 'Asks /readyz of the server at --listen whether it is ready.',
    examples: ['healthcheck --wait 10s', 'healthcheck --listen unix:/run/plantstore.sock --json'],
    exits: { done: 'The server is ready.', failed: 'The server is not ready or does not answer.' },
    options: ['asked', 'tlsCert', 'wait', 'json'],
  }).action(async ({ listen, tlsCert, wait, json }) => {
    const scheme = tlsCert === undefined ? 'http' : 'https'
    const newTarget = () => ({ ...clientTarget(listen), signal: AbortSignal.timeout(HEALTHCHECK_TIMEOUT_MS) })
    const waitsUntilMs = io.monotonicMs() + wait
    let target = newTarget()
    // With a certificate, the server must have the same one, or one for the same names of the same authority.
    const trust = tlsCert === undefined ? {} : (await import('../serve/tls.ts')).trustOnly(tlsCert)
    let answer = await askReadiness(scheme, { ...trust, ...target })
    while (answer !== 200 && io.monotonicMs() < waitsUntilMs && mayBecomeReady(io)) {
      await Bun.sleep(PAUSE_MS)
      target = newTarget()
      answer = await askReadiness(scheme, { ...trust, ...target })
    }
    const status = answer instanceof Error ? null : answer
    if (json) await io.print(toJson({ isReady: status === 200, status }))
    if (status === 200) return io.report('The server is ready.')
    if (!mayBecomeReady(io)) throw new AppError('address_unavailable', { message: HAS_ENDED, cause: answer })
    const message =
      answer instanceof Error
        ? `There is no answer from ${formatAddress(target, scheme)}${await whyNone(answer, scheme, target)}.`
        : `The server is not ready: ${status}.`
    throw new AppError('address_unavailable', { message, cause: answer })
  })

/**
 * Whether it makes sense to ask again. systemd tells the commands of a unit the process of the server (systemd.exec(5)), and can
 * restart a server that has ended only when this command has ended, too.
 */
const mayBecomeReady = ({ env: { MAINPID }, isRunning }: Io): boolean =>
  MAINPID === undefined || isRunning(Number(MAINPID))

type Scheme = 'http' | 'https'
type Target = RequestOptions & { readonly signal: AbortSignal }

/** The status of `/readyz`, or why there is none. `fetch` would ask a proxy of the environment, so this does not use it. */
async function askReadiness(scheme: Scheme, target: Target): Promise<number | Error> {
  const { get } = scheme === 'http' ? await import('node:http') : await import('node:https')
  const { promise, resolve } = Promise.withResolvers<number | Error>()
  target.signal.addEventListener('abort', () => resolve(target.signal.reason))
  get({ ...target, path: '/readyz' }, (response) => {
    response.resume()
    resolve(response.statusCode ?? 0)
  }).on('error', resolve)
  return promise
}

/** Ends the sentence that says that there is no answer. Finds out whether the server would answer with TLS, or without. */
async function whyNone(error: Error, scheme: Scheme, target: Target): Promise<string> {
  if (error.name === 'TimeoutError') return ': it took too long'
  const other = await askReadiness(scheme === 'http' ? 'https' : 'http', { ...target, rejectUnauthorized: false })
  if (other instanceof Error) return `: ${codeOf(error) ? readFailure(error) : error.message}`
  return scheme === 'http'
    ? ', because it speaks TLS: add --tls-cert'
    : ', because it does not speak TLS: leave out --tls-cert'
}
