// Tested in test/http/page/page-answers.test.ts.
import { type Answer, CODES, isPassing, isUnknown, readAnswer } from './answer.ts'
import { describeRefusal } from './messages.ts'
import { reset, set, state } from './state.ts'
import { forgetToken, type Grant, hashOf } from './storage.ts'

/** A request or a change failed: the server refused it, or the user gave it up. The message is for people. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message)
  }
}

/** The refusal that was thrown. Any other error is a bug, and is thrown again. */
export function refusalIn(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  throw error
}

/** The server answers with these before it does anything. */
const NOTHING_DONE = [42900, 42901, 50301, 50303]
/** The pause before a request is sent again, unless the server says another one. */
const RETRY_AFTER_S = 5
/** The page waits so long for the head of an answer, and for each further part of it. */
const SILENCE_MAX_MS = 30_000

let token = ''
/** Who has signed in with the identity provider. */
export let grant: Grant | undefined
/** Uses a token from now on, or none if it is empty. Nobody gets the answers to earlier requests any more. */
export function connect(next: string, nextGrant?: Grant): void {
  token = next
  grant = nextGrant
  set({ pause: undefined })
}

/** Waits until requests may be sent again, in a pause that all of them share. Resolves to `false` if the user gives them up. */
function wait(message: string, seconds: number): Promise<boolean> {
  const { pause } = state
  return new Promise((resolve) => {
    const end = (isSentAgain: boolean) => {
      set({ pause: undefined })
      pause?.end(isSentAgain)
      resolve(isSentAgain)
    }
    set({ pause: pause && pause.seconds <= seconds ? { ...pause, end } : { message, seconds, end } })
  })
}

/** What else a request has, and the error codes that do not reject. `noAnswer` stands for all after which it would wait. */
interface Sent extends Pick<RequestInit, 'body' | 'headers'> {
  readonly expected?: readonly number[]
}

/** Sends a request once, and returns what comes of it. */
async function ask(method: string, path: string, init: RequestInit): Promise<Answer> {
  const job = new AbortController()
  let timer = 0
  const hear = () => {
    clearTimeout(timer)
    timer = setTimeout(() => job.abort(), SILENCE_MAX_MS)
  }
  try {
    hear()
    const { signal } = job
    const response = await fetch(path, { cache: 'no-store', redirect: 'manual', ...init, method, signal })
    const ears = new TransformStream<Uint8Array, Uint8Array>({
      transform(part, rest) {
        hear()
        rest.enqueue(part)
      },
    })
    const text = await new Response(response.body?.pipeThrough(ears)).text()
    return readAnswer(method, path, response, text)
  } catch {
    const error = job.signal.aborted ? CODES.silent : CODES.noAnswer
    return { error, message: '', plants: [], headers: new Headers() }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Sends a request, again and again if it may succeed later. Returns the answer of success, or the one with an `expected` error
 * code. Others reject with a `Refusal`. The code is `unknown` if the user gives up what may be done, and after silence or a bug.
 */
export async function send(method: string, path: string, { expected = [], ...sent }: Sent = {}): Promise<Answer> {
  const sentToken = token
  // A header takes no other characters, and no token has any.
  const authorization = `Bearer ${token.replace(/[^!-~]/g, '?')}`
  const headers = { authorization, 'content-type': 'application/json', ...sent.headers }
  let mayBeDone = false
  for (;;) {
    const answer = await ask(method, path, { ...sent, headers })
    const { error, message } = answer
    const hasWorked = (grant ? grant.user : state.isReturning && 'before') || state.user
    if (token === sentToken && error === CODES.tokenInvalid) endSession(describeRefusal(error, hasWorked, grant))
    // Nobody waits for it any more.
    if (token !== sentToken) return new Promise<never>(() => {})
    const isExpected = expected.includes(isPassing(error) ? CODES.noAnswer : error)
    if (error === 0 || isExpected) return answer
    const refusal = new Refusal(error, describeRefusal(error, message, grant))
    const isInDoubt = expected.includes(CODES.unknown)
    if (!isInDoubt || !isUnknown(error)) {
      if (!isPassing(error)) throw refusal
      mayBeDone ||= !NOTHING_DONE.includes(error)
      if (await wait(refusal.message, Number(answer.headers.get('retry-after')) || RETRY_AFTER_S)) continue
      if (!mayBeDone || !isInDoubt) throw refusal
    }
    set({ notice: describeRefusal(CODES.unknown, method) })
    return { ...answer, error: CODES.unknown }
  }
}

/** The token is used no more, and the page says why. What the tab keeps beside it stays until another token signs in. */
export function endSession(problem: string): void {
  forgetToken(token)
  connect('')
  reset(problem)
}

/** The SHA-256 of the token, of the user of a provider, or of nothing: what signs out together. */
export const signInHash = () => hashOf(grant?.user ?? token)

/** What the server says of the token, and when the token ends by the clock of this browser: `NaN` without an end. */
export async function getToken() {
  const { token: { user = '', scope, expires = '' } = {}, headers } = await send('GET', 'token')
  const serverMs = Date.parse(headers.get('date') ?? '') || Date.now()
  return { user, canWrite: scope === 'write', endsAtMs: Date.now() + Date.parse(expires) - serverMs }
}
