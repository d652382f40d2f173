// Tested in test/cli/postgres-access.test.ts.
import { orUndefined } from './error.ts'

/** How much of a connection is protected, weakest first (https://www.postgresql.org/docs/current/libpq-ssl.html). */
const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

/** Whether the login is bound to the TLS connection. */
const CHANNEL_BINDINGS = ['disable', 'prefer', 'require'] as const

/** A database on a server that speaks PostgreSQL's protocol. */
export interface PostgresAddress {
  readonly user: string
  /** Empty if the URL has none. */
  readonly password: string
  /** A name, an address, or the folder of a unix socket. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly sslMode: (typeof SSL_MODES)[number]
  /** A file with the certificates of the trusted authorities, instead of those that the runtime trusts. */
  readonly caPath: string | undefined
  /** Whether the login is bound to the TLS connection (https://www.postgresql.org/docs/current/sasl-authentication.html). */
  readonly channelBinding: (typeof CHANNEL_BINDINGS)[number]
}

const SCHEME = /^postgres(?:ql)?:\/\//i
const PORT = 5432
const PARAMETERS = ['sslmode', 'sslrootcert', 'channel_binding']

export const isPostgresUrl = (text: string): boolean => SCHEME.test(text)

/**
 * Whether a text that is no such URL looks like the address of a server. It begins with a scheme, holds `://` or a colon before
 * an at sign, or consists of `name=value`. It may hold a password, so messages never repeat it. Any other text is the path of a
 * file.
 */
export const looksLikeServer = (text: string): boolean =>
  /^\s*[a-z][a-z\d+.-]*:|:\/\/|:.*(@|%40)|(^|\s)(host\w*|port|user|dbname|service)\s*=|(pass(word|wd)?|pwd)\s*=/i.test(
    text,
  )

/**
 * Parses `postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?sslmode=MODE&sslrootcert=FILE&channel_binding=MODE]`, with percent-encoded parts. A HOST
 * that begins with a slash is the folder of a unix socket. Returns the rule that the text breaks, if it breaks one.
 */
export function parsePostgresUrl(text: string): PostgresAddress | string {
  // A text that is no URL throws, and so does a percent sign that begins no encoding.
  const parts = orUndefined(() => partsOf(new URL(text)))
  if (parts === undefined) {
    // The message has no example with an at sign: `hidePasswords` would cut it.
    return 'a URL with a user, one host and a database, in which special characters are percent-encoded'
  }
  const { query, ...address } = parts
  if ([...query.keys()].some((name) => !PARAMETERS.includes(name))) {
    return `a URL without parameters but ${PARAMETERS.join(', ')}: write the password behind the user, or into a file`
  }
  const sslMode = SSL_MODES.find((mode) => mode === (query.get('sslmode') ?? 'prefer'))
  if (sslMode === undefined) return `a URL with an sslmode of ${SSL_MODES.join(', ')}`
  const root = query.get('sslrootcert') ?? undefined
  if (root === 'system' && sslMode !== 'verify-full') return 'a URL with sslmode=verify-full for sslrootcert=system'
  if (root !== undefined && !sslMode.startsWith('verify-')) {
    return 'a URL with sslmode=verify-full or verify-ca if it has an sslrootcert'
  }
  const channelBinding = CHANNEL_BINDINGS.find((mode) => mode === (query.get('channel_binding') ?? 'prefer'))
  if (channelBinding === undefined) return `a URL with a channel_binding of ${CHANNEL_BINDINGS.join(', ')}`
  return { ...address, sslMode, caPath: root === 'system' ? undefined : root, channelBinding }
}

/** A database in a message: its URL without the password. */
export const describeAddress = ({ user, host, port, database }: PostgresAddress): string =>
  `postgres://${encodeURIComponent(user)}@${host.includes(':') ? `[${host}]` : encodeURIComponent(host)}:${port}/${encodeURIComponent(database)}`

/** Hides the passwords of URLs in a text. Somebody may have given a URL where a path belongs. */
export const hidePasswords = (text: string): string => text.replace(PASSWORD, '$1:***@')
/** What follows the scheme in a text of `describeAddress`. The message of the server behind it may have an at sign. */
const DESCRIBED = String.raw`:\/\/[^:/?#@]+@(?:\[[^\]]+\]|[^:/?#@]+):\d+\/[^\s@]*(?:\s|$)`
const PASSWORD = new RegExp(String.raw`(?<!https?)(?!${DESCRIBED})(:\/+[^:/?#]*):.*@`, 'gi')

export const isLocal = ({ host }: PostgresAddress): boolean =>
  host.startsWith('/') || host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)

function partsOf({ username, password, hostname, port, pathname, searchParams, hash }: URL) {
  const [user, host, database] = [username, hostname, pathname.slice(1)].map(decodeURIComponent)
  if (!user || !host || !database || host.includes(',') || hash !== '') return undefined
  // This is the rest of a password whose at sign and slash were not percent-encoded.
  if (/[/:@]/.test(pathname.slice(1))) return undefined
  return {
    user,
    password: decodeURIComponent(password),
    host: host.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? PORT : Number(port),
    database,
    query: searchParams,
  }
}
