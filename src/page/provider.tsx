// Tested in test/http/page/signin.test.ts.
import type * as OAuth from './oauth.ts'
import { Button } from './parts.tsx'
import { forgetAddresses, set } from './state.ts'
import { FLOW } from './storage.ts'

/** How people sign in with an identity provider, if the operator has set that up. */
const SETTINGS: OAuth.SignIn | null = JSON.parse(
  document.querySelector<HTMLMetaElement>('meta[name=provider]')?.content ?? 'null',
)
const HOST = SETTINGS && new URL(SETTINGS.server.issuer).host
/** Where the provider sends people back to: this page, behind whatever prefix. */
const PAGE_URL = location.origin + location.pathname

/** Why nobody can sign in with the provider now. */
const PROBLEM = SETTINGS && problemOf(SETTINGS)

function problemOf({ server }: OAuth.SignIn): string {
  if (!isSecureContext) return `To sign in with ${HOST}, open this page at an address that begins with https.`
  if (server.authorization_endpoint && server.token_endpoint) return ''
  return `The server cannot reach ${HOST}: to sign in there, load this page again in a minute.`
}

/** The way to the provider, below the form for tokens. */
export const ProviderSignIn = () =>
  SETTINGS && (
    <>
      <p>or</p>
      {PROBLEM ? <p>{PROBLEM}</p> : <Button text={`Sign in with ${HOST}`} onClick={() => leave(SETTINGS)} />}
    </>
  )

/** Does something with the protocol: a script that only this loads. */
function withProtocol<T>(act: (protocol: typeof OAuth) => Promise<T>): Promise<T | { problem: string }> {
  const protocol: Promise<typeof OAuth> = import(
    document.querySelector<HTMLLinkElement>('link[href*="/oauth-"]')?.href ?? ''
  )
  return protocol.then(act, () => ({ problem: 'A part of this page cannot be loaded: load the page again.' }))
}

/** Goes to the provider. What is typed stays in the tab, and no address of the user in its history. */
async function leave(settings: OAuth.SignIn): Promise<void> {
  const { hash: fragment } = location
  const { user } = history.state ?? {}
  const begun = await withProtocol(({ begin }) => begin(settings, PAGE_URL))
  if ('problem' in begun) return set(begun)
  const { url, ...flow } = begun
  if (!FLOW.write({ ...flow, fragment, user }))
    return set({ problem: `This browser keeps nothing of this page, so sign in with a token and not with ${HOST}.` })
  await forgetAddresses()
  location.assign(url)
}

/** Takes the provider's answer out of the address, if there is one. Returns what redeems it, if this tab has asked for it. */
export function takeAnswer(): (() => Promise<OAuth.Outcome>) | undefined {
  const parts = [location.hash, location.search].map((part) => new URLSearchParams(part.slice(1)))
  const answer = parts.find((part) => part.has('code') || part.has('error'))
  if (!SETTINGS || !answer) return undefined
  const flow = FLOW.read()
  FLOW.clear()
  history.replaceState(flow?.user ? { user: flow.user, depth: 0 } : null, '', PAGE_URL + (flow?.fragment || '#/'))
  if (flow && answer.get('state') === flow.state)
    return () => withProtocol(({ finish }) => finish(SETTINGS, PAGE_URL, answer, flow))
  set({ problem: 'This tab has not begun that sign-in, or has used its answer before: sign in once more.' })
  return undefined
}

/** Where to go to sign out there as well (RP-Initiated Logout 1.0 §2), if the provider has that. */
export function signOutUrl(): string | undefined {
  if (!SETTINGS?.server.end_session_endpoint) return undefined
  const url = new URL(SETTINGS.server.end_session_endpoint)
  url.searchParams.set('client_id', SETTINGS.clientId)
  url.searchParams.set('post_logout_redirect_uri', PAGE_URL)
  return url.href
}
