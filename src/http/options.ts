// Tested in test/cli/transcripts/serve-options.txt.
import type { Clocks } from '../clocks.ts'
import type { Settings } from '../config.ts'
import type { Store, Version } from '../domain/store.ts'
import type { Caller, UserId } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import type { CappedList } from './lists/render-list.ts'
import type { RequestStatistics } from './statistics.ts'

/** The settings that say how requests are answered. Sizes are in bytes, and times in milliseconds. */
type RequestSetting =
  | ('maxBody' | 'listMax' | 'rateLimit' | 'idleTimeout' | 'tlsCert' | 'corsOrigin')
  | ('page' | 'docs' | 'publicUrl' | 'accessLog' | 'logAddresses' | 'trustedProxy')

/** What the service is made of. `undefined`: the feature is off. */
export interface AppOptions extends Pick<Settings, RequestSetting>, Clocks {
  readonly store: Store
  /** Called with every token that is accepted. */
  readonly recordUse: (token: Caller) => void
  readonly log: Logger
  readonly statistics: RequestStatistics | undefined
  /** Aborted at the first signal: the server is about to end. */
  readonly draining: AbortController
  /** When the last check began that found the store ready, in Unix milliseconds. All threads share this one number. */
  readonly readyAtMs: Float64Array
  /** Whose JWTs the service accepts beside its own tokens. */
  readonly provider: IdentityProvider | undefined
  /** How many threads of this process answer requests. They share the memory for caches. */
  readonly threads: number
  /** `HTTP_DEADLINES` if left out. */
  readonly deadlines?: typeof HTTP_DEADLINES | undefined
}

/** How long the server waits for the next part of a body, for one that the runtime hides, and for the keys of a provider. */
export const HTTP_DEADLINES = { stallMs: 2000, hiddenBodyMs: 500, keysMs: 5000 }

/** What the routes share: the options, and what is made of them. */
export interface Services extends AppOptions {
  /** Counts a request of an accepted caller before anything else of it is checked. Rejects with `rate_exceeded`. */
  readonly countRequest: ((caller: Caller) => Promise<void>) | undefined
  readonly tokens: TokenCache
  readonly lists: ListCache
}

/** The cache of tokens by their texts. A change by any process invalidates the tokens of its user. */
export interface TokenCache {
  /** The cached token with this text; `undefined` if it was never read, is outdated or has expired. */
  get(text: string | undefined): Caller | undefined
  /** Reads the token with this text from the store, or verifies the JWT, and caches it. May reject with `token_invalid`. */
  read(text: string): Promise<Caller>
  /** The accepted token of a request as it is now. Rejects with `token_invalid` if it has ended or has another user. */
  readTokenAgain(request: Request, caller: Caller): Promise<Caller>
}

/** The cache of capped lists by user and URL. It gives a list only while a new read would give the same. */
export interface ListCache {
  /** The list that the user was answered at this URL, if it is still right. */
  get(user: UserId, url: string): CappedList | undefined
  /** Caches a list that was read after the user's plants had this version. */
  set(user: UserId, url: string, version: Version | undefined, list: CappedList): void
}

/** Verifies JWTs. It rejects with `token_invalid`, or with `store_busy` while there are no keys. */
export interface IdentityProvider {
  readonly issuer: string
  /** How people sign in there at the page, if they do. It has no endpoints until the metadata of the provider were read. */
  signIn(): SignIn | undefined
  verify(text: string): Promise<Omit<Caller, 'userId' | 'userBlockedAtMs'>>
}

/** How the page at / signs in with an identity provider. It is public. */
export interface SignIn {
  readonly clientId: string
  /** What it also asks of the provider, by names. */
  readonly parameters: readonly (readonly [name: string, value: string])[]
  /** A part of the metadata (RFC 8414 §2). */
  readonly server: Readonly<Record<string, unknown>>
}
