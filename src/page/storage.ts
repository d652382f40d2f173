// Tested in test/http/page/page-access.test.ts.
import { sha256 } from '@noble/hashes/sha2.js'
import type { State } from './state.ts'

/**
 * A value that the browser keeps for this page, as JSON: for this tab, or for all tabs. People can turn storage off, and it can
 * be full: then `write` returns `false`, and `read` finds nothing. Another service of this host has other keys.
 */
function slot<T>(name: string, area: 'sessionStorage' | 'localStorage') {
  const key = `plantstore ${name} of ${location.pathname}`
  /** Even the property throws if storage is turned off. */
  const attempt = <R>(act: (storage: Storage) => R): R | undefined => {
    try {
      return act(window[area])
    } catch {
      return undefined
    }
  }
  return {
    read: () => attempt<T | undefined>((storage) => JSON.parse(storage.getItem(key) ?? 'null') ?? undefined),
    write: (value: T) => attempt((storage) => storage.setItem(key, JSON.stringify(value)) === undefined) ?? false,
    clear: () => attempt((storage) => storage.removeItem(key)),
  }
}

export const TAB_TOKEN = slot<string>('token', 'sessionStorage')
export const BROWSER_TOKEN = slot<string>('token', 'localStorage')
/** Who has signed in with the identity provider, if the token of the tab is from there. Until it was used, `user` is missing. */
export type Grant = Readonly<{ user?: string; name?: string }>
export const GRANT = slot<Grant>('grant', 'sessionStorage')
/** What must be known when the provider answers: also the address that the tab had, and its user. */
export type Flow = Readonly<Record<'verifier' | 'state' | 'fragment', string> & { user?: string }>
export const FLOW = slot<Flow>('flow', 'sessionStorage')
/** Whether keys of one character do something. */
export const SINGLE_KEYS = slot<boolean>('keys', 'localStorage')

/** What the tab keeps for its user: the form in which something is typed. */
export type Kept = Pick<State, 'panel' | 'typed'>
export const KEPT = slot<Kept & Pick<State, 'user'>>('kept', 'sessionStorage')

/** The SHA-256 of a text in base64url. Over plain HTTP browsers have none of their own. */
export const hashOf = (text: string): string =>
  btoa(String.fromCharCode(...sha256(new TextEncoder().encode(text))))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace('=', '')

/** Forgets a token, or any if none is given. */
export function forgetToken(token?: string): void {
  for (const each of [TAB_TOKEN, BROWSER_TOKEN]) if (token === undefined || each.read() === token) each.clear()
  if (TAB_TOKEN.read() === undefined) for (const each of [GRANT, FLOW]) each.clear()
}
