// Tested in test/cli/option-rules.test.ts.
import { isIP, isIPv6 } from 'node:net'
import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { type Address, isSafeAddress, type TrustedProxy } from './address.ts'
import { isPostgresUrl, looksLikeServer, parsePostgresUrl } from './database-url.ts'
import { OTHER_NAME_RULE, PROVIDER_USER_PREFIX, USER_NAME, USER_NAME_RULE } from './domain/token.ts'
import { misused } from './error.ts'

/**
 * What is wrong with a text, as the end of a sentence. Commander puts the option or the variable before it, and repeats the text:
 * after a NUL, which no argument and no variable has, the text cannot be confused with the sentence.
 */
export class RefusedText extends InvalidArgumentError {
  constructor(readonly predicate: string) {
    super(`\0${predicate}.`)
  }
}

const refuse = (rule: string): never => {
  throw new RefusedText(`must be ${rule}`)
}

/** Returns the value of a text that is not empty, or throws `RefusedText`. `words` are all texts that it takes, if few. */
export type Parser<T> = ((text: string, before?: T) => T) & { readonly words?: readonly string[] }

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const UNITS_BYTES: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2 }
const PORT_MAX = 65535
const LABEL_LENGTH_MAX = 200
/** The most requests of `rate`. */
const REQUESTS_MAX = 1_000_000

/** A whole number with one of these units. The value is in the smallest unit. */
function quantity(units: Readonly<Record<string, number>>, minText: string, maxText: string): Parser<number> {
  const parse = (text: string): number => {
    const [, digits, unit = ''] = /^(\d{1,12})([A-Za-z]+)$/.exec(text) ?? []
    return text === '0' ? 0 : Number(digits) * (units[unit] ?? Number.NaN)
  }
  const names = Object.keys(units)
    .join(', ')
    .replace(/, (?=\S+$)/, ' or ')
  return (text) => {
    const value = parse(text)
    if (value >= parse(minText) && value <= parse(maxText)) return value
    return refuse(`a whole number with a unit, ${names}, from ${minText} to ${maxText}`)
  }
}

/** A time in milliseconds. */
export const duration = (minText: string, maxText = '36500d') => quantity(UNITS_MS, minText, maxText)

/** A size in bytes. */
export const size = quantity(UNITS_BYTES, '1B', '1024MiB')

export const count =
  (max: number, min = 1): Parser<number> =>
  (text) => {
    const number = /^(?:0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN
    return number >= min && number <= max ? number : refuse(`a whole number from ${min} to ${max}`)
  }

/** How many requests a token may make in a period of time. */
export const rate: Parser<{ readonly requests: number; readonly periodMs: number }> = (text) => {
  const [, digits, unit = ''] = /^([1-9]\d{0,6})\/([smh])$/.exec(text) ?? []
  const [requests, periodMs] = [Number(digits), UNITS_MS[unit] ?? Number.NaN]
  if (requests <= REQUESTS_MAX) return { requests, periodMs }
  return refuse(`a number of requests from 1 to ${REQUESTS_MAX} with /s, /m or /h, like 100/s`)
}

/** `HOST:PORT`, with an IPv6 address in brackets, or `unix:` and a path. */
export const address: Parser<Address> = (text) => {
  if (/^unix:.+/.test(text)) return { socketPath: text.slice('unix:'.length) }
  const [scheme] = /^https?:\/\//i.exec(text) ?? []
  if (scheme !== undefined) return refuse(`HOST:PORT: leave ${scheme} out`)
  const [, ipv6, name, digits] = /^(?:\[([^\]]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text) ?? []
  const host = ipv6 ?? name
  const port = Number(digits)
  if (host === undefined || port > PORT_MAX || (ipv6 !== undefined && !isIPv6(ipv6)))
    return refuse('HOST:PORT, [IPV6]:PORT or unix:/path, with a port up to 65535')
  return { host, port }
}

/** A network of proxies in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3), one address, or `unix` for those at a unix socket. */
export const trustedProxy: Parser<TrustedProxy> = (text) => {
  if (text === 'unix') return text
  const [, address = '', digits] = /^([\da-f:.]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(text) ?? []
  const bits = isIP(address) === 6 ? 128 : 32
  const prefix = digits === undefined ? bits : Number(digits)
  const isNetwork = isIP(address) !== 0 && prefix <= bits
  return isNetwork ? { address, prefix } : refuse('networks like 10.0.0.0/8 or fd00::/8, addresses, or unix')
}

/** The path of a SQLite file, or the URL of a PostgreSQL database. A database in memory would lose what it stores. */
export const database: Parser<string> = (text) => {
  const url = isPostgresUrl(text) ? parsePostgresUrl(text) : undefined
  if (typeof url === 'string') refuse(url)
  const isPath = !text.includes('\0') && text !== ':memory:' && !looksLikeServer(text)
  return url !== undefined || isPath ? text : refuse('the path of a file, or postgres://USER@HOST/DATABASE')
}

const textThat =
  (fulfils: (text: string) => boolean, rule: string): Parser<string> =>
  (text) =>
    fulfils(text) ? text : refuse(rule)

export const path = textThat((text) => !text.includes('\0'), 'the path of a file')

export const userName = textThat((text) => USER_NAME.test(text), USER_NAME_RULE)

/** The name of a user whom a command may make. */
export const newUserName: Parser<string> = (text) =>
  text.startsWith(PROVIDER_USER_PREFIX) ? refuse(OTHER_NAME_RULE) : userName(text)

export const text: Parser<string> = (text) => text

/** What a token is for, in one line. */
export const label = textThat(
  (text) => /^\P{Cc}+$/u.test(text) && text.length <= LABEL_LENGTH_MAX && text.isWellFormed(),
  `1 to ${LABEL_LENGTH_MAX} characters without control characters`,
)

/** An origin as browsers send it (Fetch standard §3.1). No request would match an origin in another form. */
export const origin = textThat(
  (text) => /^https?:\/\/[a-z0-9._:[\]-]+$/.test(text) && URL.parse(text)?.origin === text,
  'origins as browsers send them, like https://app.example.org: lower case, no path, no default port',
)

/**
 * An http or https URL to which paths can be appended. The value has no slash at its end. It stands within quotes in a header, so
 * it has the characters of RFC 3986 and no others.
 */
export const url: Parser<string> = (text) => {
  const isPlain = /^https?:\/\/[\w.~:/[\]!$&'()*+,;=%-]+$/.test(text) && URL.canParse(text)
  return isPlain ? text.replace(/\/+$/, '') : refuse('an http or https URL without user, query and fragment')
}

/** The identifier of an identity provider, as its tokens have it (RFC 8414 §2). Its documents are fetched from there. */
export const issuer = textThat(
  (text) => /^https?:\/\/[^\s?#@\\]+$/.test(text) && isSafeAddress(text),
  'an https URL without user, query and fragment; http is only for this machine',
)

/** The page sets these in its requests to an identity provider. */
const OWN_PARAMETERS = /^(?:client_id|code\w*|grant_type|redirect_uri|refresh_token|response_type|state)$/

/** A parameter of a request to an identity provider (RFC 6749 §4.1.1), and its value. */
export const requestParameter: Parser<readonly [name: string, value: string]> = (text) => {
  const [, name = '', value = ''] = /^(\w+)=(.+)$/s.exec(text) ?? []
  if (name !== '' && !OWN_PARAMETERS.test(name)) return [name, value]
  return refuse('NAME=VALUE, like scope=plants:write, and no parameter that the page sets itself, like state')
}

/** A day or a time in UTC (RFC 3339), in milliseconds since 1970-01-01 UTC. A day is its first moment. */
export const time: Parser<number> = (text) => {
  const ms = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{3})?Z)?$/.test(text) ? Date.parse(text) : Number.NaN
  // February 30 is read as March 2.
  const isTime = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text.slice(0, 'YYYY-MM-DDThh:mm:ss'.length))
  return isTime ? ms : refuse('a time in UTC, like 2027-01-31 or 2027-01-31T18:00:00Z')
}

export const oneOf = <const T extends string>(words: readonly T[]): Parser<T> => {
  const parse = (text: string) => words.find((word) => word === text) ?? refuse(`one of ${words.join(', ')}`)
  return Object.assign(parse, { words })
}

/** One of two words: `true` for the first. */
export const either = (yes: string, no: string): Parser<boolean> =>
  Object.assign((text: string) => oneOf([yes, no])(text) === yes, { words: [yes, no] })

/** Several values: separated by commas, or the option repeated. */
export const listOf =
  <T>(parser: Parser<T>): Parser<readonly T[]> =>
  (text, before = []) => [...before, ...text.split(',').map((part) => parser(part))]

export const option = <Flags extends string, T>(flags: Flags, parser: Parser<T>) => ({
  help(help: string) {
    const made = new Option(flags, help)
    if (parser.words) made.argChoices = [...parser.words]
    return made.argParser((text: string, before?: T): T => parse(decoded(text), parser, before))
  },
})

/** An option with a value, and the text of its default. */
export const optionWithDefault = <Flags extends string, T>(flags: Flags, parser: Parser<T>, defaultText: string) => ({
  help: (help: string) => option(flags, parser).help(help).default(parser(defaultText), defaultText),
})

/** Texts that no message shows: they may have a password or a token, or are too long. */
const NOT_SHOWN = /@|%40|plst_|^eyJ|pass|pwd|secret|.{61}/is

/** A text of the command line or a variable. Throws `RefusedText` if it was not UTF-8, which the runtime reads as U+FFFD. */
export function decoded(text: string): string {
  if (!text.includes('\ufffd')) return text
  throw new RefusedText('is not UTF-8, or has the character U+FFFD: convert it, or rename the file')
}

/** The value of a text. Throws `RefusedText`. An empty text is no default: an empty `PLANTSTORE_TLS_CERT` would mean no TLS. */
export function parse<T>(text: string, parser: Parser<T>, before?: T): T {
  if (text === '') throw new RefusedText('is empty: leave it out, or give it a value')
  try {
    return parser(text, before)
  } catch (error) {
    // A database that is refused may be a mistyped URL, with any password.
    const isShown = error instanceof RefusedText && parser !== (database as unknown) && !NOT_SHOWN.test(text)
    throw isShown ? new RefusedText(`is ${JSON.stringify(text)} but ${error.predicate}`) : error
  }
}

/** The value of a text that is no option. Throws `misused`; `name` is the subject of the message. */
export const parseValue = <T>(text: string, parser: Parser<T>, name: string): T =>
  withName(name, () => parse(text, parser))

/** What `read` returns. If it refuses a text, throws `misused`; `name` is the subject of the message. */
export function withName<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof RefusedText ? misused(`${name} ${error.predicate}.`) : error
  }
}
