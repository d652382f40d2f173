// Tested in test/http/page/page-access.test.ts.
import { useState } from 'preact/hooks'
import { connect, endSession, getToken, grant, Refusal, refusalIn, signInHash } from './client.ts'
import { Button, focus, focusElement, Picture } from './parts.tsx'
import { ProviderSignIn, signOutUrl, takeAnswer } from './provider.tsx'
import { arrive, forgetAddresses, isChanging, set, state } from './state.ts'
import { BROWSER_TOKEN, forgetToken, GRANT, type Grant, KEPT, type Kept, TAB_TOKEN } from './storage.ts'

/** Signs in with a token. An earlier sign-in that still waits counts no more. */
async function signIn(token: string, slot: typeof TAB_TOKEN, from?: Grant): Promise<void> {
  connect(token, from)
  set({ problem: '', notice: 'Signing in…' })
  const found = await getToken().catch(refusalIn)
  if (found instanceof Refusal) return set({ problem: found.message, notice: '', isReturning: false })
  const { user, canWrite, endsAtMs } = found
  const kept = KEPT.read()
  const isOwn = kept?.user === user
  if (!isOwn) KEPT.clear()
  forgetToken()
  const granted = from && { ...from, user }
  connect(token, granted)
  const isKept = slot.write(token) && (!granted || GRANT.write(granted))
  const warning = isKept ? '' : 'This browser keeps nothing of this page: after a reload, sign in again.'
  set({ ...(isOwn ? kept : {}), user, canWrite, isReturning: false })
  arrive()
  set({ notice: `${isOwn ? '' : lossOf(kept)} ${warning}`.trim() })
  if (!from) watchEnd(endsAtMs)
}

const LOOK_EVERY_MS = 5000
let watching = 0

/** Announces the end of the token twice. It looks at the clock, because no timer counts while a computer sleeps. */
function watchEnd(endsAtMs: number): void {
  let [announced, due] = ['', '']
  const look = () => {
    if (state.canWrite === undefined) return clearInterval(watching)
    const leftMs = endsAtMs - Date.now()
    if (leftMs < 3_600_000) due = leftMs < 300_000 ? 'five minutes' : 'the hour'
    if (due === announced) return
    announced = due
    const time = new Date(endsAtMs).toLocaleTimeString([], { timeStyle: 'short' })
    set({ ending: `This token ends within ${due}, at ${time}. To go on after that, have another token ready.` })
  }
  clearInterval(watching)
  watching = setInterval(look, LOOK_EVERY_MS)
  look()
}

/** What to tell when what the tab keeps is forgotten. */
const lossOf = ({ typed = {} }: Partial<Kept> = {}): string =>
  Object.keys(typed).length > 0 ? 'The text in the form is lost.' : ''

/** Signs in with what the identity provider has answered, unless somebody signs out meanwhile. */
async function signInWith(redeem: NonNullable<ReturnType<typeof takeAnswer>>): Promise<void> {
  const pending = {}
  connect('', pending)
  set({ isReturning: true, notice: 'Signing in…' })
  const outcome = await redeem()
  if (grant !== pending) return
  if ('problem' in outcome) return set({ ...outcome, notice: '', isReturning: false })
  await signIn(outcome.token, TAB_TOKEN, outcome.grant)
}

/** Signs in with the answer of the identity provider, or with a token that the browser keeps. */
export function returnToSession(): void {
  const redeem = takeAnswer()
  if (redeem) return void signInWith(redeem)
  const slot = [TAB_TOKEN, BROWSER_TOKEN].find((each) => each.read() !== undefined)
  const token = slot?.read()
  if (slot === undefined || token === undefined) return void (history.state && forgetAddresses())
  set({ isReturning: true })
  void signIn(token, slot, slot === TAB_TOKEN ? GRANT.read() : undefined)
}

/** The tabs of this browser tell each other who signs out. */
const signOuts = new BroadcastChannel(`plantstore sign-out of ${location.pathname}`)
signOuts.onmessage = ({ data }) => {
  const isIn = state.isReturning || state.canWrite !== undefined
  if (!isIn || data !== signInHash()) return
  const loss = lossOf(state)
  KEPT.clear()
  endSession(`You have signed out in another tab. ${loss}`)
  void forgetAddresses()
}

export async function signOut(): Promise<void> {
  const loss = lossOf(state)
  if (loss !== '' && !confirm(`Sign out? ${loss}`)) return
  if (isChanging() && !confirm('Sign out, and stop what is changing plants?')) return
  signOuts.postMessage(signInHash())
  const url = grant && signOutUrl()
  // Nothing is written any more.
  connect('')
  set({ canWrite: undefined, user: '', isReturning: true, upload: undefined, typed: {} })
  forgetToken()
  KEPT.clear()
  await forgetAddresses()
  // Each ends all requests, and leaves nothing in memory. If Back returns from the provider to this page, it loads anew.
  addEventListener('pageshow', () => location.reload())
  if (url) location.assign(url)
  // Once somebody has stayed on the page, Firefox ignores a reload.
  else location.replace(location.pathname)
}

function submit(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void {
  event.preventDefault()
  const values = new FormData(event.currentTarget)
  const token = tokenIn(String(values.get('token')))
  // A screen reader reads that the list is there.
  void signIn(token, values.has('keep') ? BROWSER_TOKEN : TAB_TOKEN).then(() => focus('.list'))
}

/** The token in a text that somebody has copied with `Bearer`, quotes or other words around it. */
const tokenIn = (text: string): string => /\bplst_\w+|\beyJ[\w-]*\.[\w-]+\.[\w-]*/.exec(text)?.[0] ?? text.trim()

/** Whether the server takes JWTs of an identity provider. */
const takesJwts = document.querySelector('meta[name=jwt]') !== null

/** The form for a token. It says what this page is, and how to get a token. */
export function SignIn() {
  const [isShown, setIsShown] = useState(false)
  return (
    <form class="sign-in" onSubmit={submit}>
      <Picture />
      <h2>Your plants, in one place</h2>
      <p>Sign in with your access token to see and change your list of plants.</p>
      <label for="token">Access token</label>
      <input
        {...{ id: 'token', name: 'token', autocomplete: 'current-password', ...(isShown ? {} : { type: 'password' }) }}
        placeholder={takesJwts ? 'plst_… or eyJ…' : 'plst_…'}
        required
        ref={focusElement} // At once. A browser sets its autofocus with a later frame.
        aria-invalid={state.problem !== '' || undefined}
        aria-describedby="token-problem token-help"
      />
      <Button text={`${isShown ? 'Hide' : 'Show'} the token`} kind="quiet" onClick={() => setIsShown(!isShown)} />
      <p id="token-problem" role="alert">
        {state.problem}
      </p>
      <label>
        Name in your password manager (optional)
        <input name="name" autocomplete="username" />
      </label>
      <label>
        <input name="keep" type="checkbox" /> Stay signed in on this browser
      </label>
      <button type="submit" class="primary">
        Sign in
      </button>
      <small id="token-help">
        No token? The operator of this server makes one with <code>plantstore token create --user NAME</code>.
        {takesJwts && ' One of your identity provider, which begins with eyJ, does as well.'}
      </small>
      <small>The browser keeps the token on its disk until you sign out, even if you close the tab.</small>
      <ProviderSignIn />
    </form>
  )
}
