import { isIPv6 } from 'node:net'
import type { Address } from './domain/address.ts'
import { isPostgresUrl, looksLikeServer, parsePostgresUrl } from './domain/database-url.ts'
import { LIMIT_MAX } from './domain/store.ts'
import { USER_NAME, USER_NAME_RULE } from './domain/user.ts'

/** Why a text is refused: the rule that it breaks, as the end of the sentence "--option must be …". */
export class Rule {
  constructor(readonly text: string) {}
}

/** A kind of value that options have. */
export interface Kind<T> {
  /** Returns the value of a text, or the rule that the text breaks. */
  readonly parse: (text: string) => T | Rule
  /** A text that the kind takes, and one that it refuses. */
  readonly example: string
  readonly badExample: string
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const UNITS_BYTES: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2 }
const SIZE_MAX_BYTES = 1024 ** 3
const PORT_MAX = 65535
const LABEL_LENGTH_MAX = 200
const REQUESTS_MAX = 1_000_000

/** A whole number with a unit of time, from `minText` to `maxText`. The value is in milliseconds. */
export const duration = (minText: string, maxText = '36500d'): Kind<number> => ({
  example: minText,
  badExample: '90',
  parse(text) {
    const ms = parseDuration(text)
    const isWithin = ms >= parseDuration(minText) && ms <= parseDuration(maxText)
    return isWithin ? ms : new Rule(`a whole number with a unit, s m h or d, from ${minText} to ${maxText}`)
  },
})

const parseDuration = (text: string): number => parseQuantity(/^(\d{1,12})([smhd])$/.exec(text), UNITS_MS)

/** A whole number with a unit of size. The value is in bytes. */
export const size: Kind<number> = {
  example: '64KiB',
  badExample: '64KB',
  parse(text) {
    const bytes = parseQuantity(/^(\d{1,12})(B|KiB|MiB)$/.exec(text), UNITS_BYTES)
    return bytes >= 1 && bytes <= SIZE_MAX_BYTES
      ? bytes
      : new Rule('a size with a unit, B KiB or MiB, like 64KiB, from 1B to 1024MiB')
  },
}

/** A whole number from 1 to `max`. */
export const count = (max: number = LIMIT_MAX): Kind<number> => ({
  example: '14',
  badExample: '0',
  parse(text) {
    const number = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN
    return number <= max ? number : new Rule(`a whole number from 1 to ${max}`)
  },
})

/** How many requests a token may make beyond its rate. */
export const burst = count(REQUESTS_MAX)

/** How many requests a token may make in a period of time. */
export interface Rate {
  readonly requests: number
  readonly periodMs: number
}

/** A number of requests and a unit of time. */
export const rate: Kind<Rate> = {
  example: '100/s',
  badExample: '100',
  parse(text) {
    const [, digits, unit = ''] = /^([1-9]\d{0,6})\/([smh])$/.exec(text) ?? []
    const requests = Number(digits)
    return requests <= REQUESTS_MAX
      ? { requests, periodMs: UNITS_MS[unit] ?? Number.NaN }
      : new Rule(`a number of requests from 1 to ${REQUESTS_MAX} with /s, /m or /h, like 100/s`)
  },
}

/** `HOST:PORT`, with an IPv6 address in brackets, or `unix:` and a path. */
export const address: Kind<Address> = {
  example: 'unix:/run/plantstore.sock',
  badExample: '3000',
  parse(text) {
    if (/^unix:.+/.test(text)) return { socketPath: text.slice('unix:'.length) }
    const [, ipv6, name, digits] = /^(?:\[([^\]]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text) ?? []
    const host = ipv6 ?? name
    const port = Number(digits)
    if (host === undefined || port > PORT_MAX || (ipv6 !== undefined && !isIPv6(ipv6)))
      return new Rule('HOST:PORT, [IPV6]:PORT or unix:/path, with a port up to 65535')
    return { host, port }
  },
}

/** The path of a SQLite file, or the URL of a PostgreSQL database. A database in memory would lose what it stores. */
export const database: Kind<string> = {
  example: 'postgres://me@db.example.org/plants',
  badExample: ':memory:',
  parse(text) {
    if (isPostgresUrl(text)) {
      const parsed = parsePostgresUrl(text)
      return typeof parsed === 'string' ? new Rule(parsed) : text
    }
    const isPath = text !== '' && !text.includes('\0') && text !== ':memory:' && !looksLikeServer(text)
    return isPath ? text : new Rule('the path of a file, or postgres://USER@HOST/DATABASE')
  },
}

/** The path of a file. */
export const path: Kind<string> = {
  example: '/run/secrets/plants and more',
  badExample: '',
  parse: (text) => (text === '' || text.includes('\0') ? new Rule('the path of a file') : text),
}

/** An http or https URL to which paths can be appended. The value has no slash at its end. */
export const url: Kind<string> = {
  example: 'https://plants.example.org',
  badExample: 'ftp://plants.example.org',
  parse(text) {
    const isPlain = /^https?:\/\/[^\s?#@\\]+$/.test(text) && URL.canParse(text)
    return isPlain ? text.replace(/\/+$/, '') : new Rule('an http or https URL without user, query and fragment')
  },
}

/** An origin as browsers send it (Fetch standard §3.1). No request would match an origin in another form. */
export const origin: Kind<string> = {
  example: 'https://app.example.org',
  badExample: '*',
  parse(text) {
    const isOrigin = /^https?:\/\/[a-z0-9._:[\]-]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text
    const rule = 'origins as browsers send them, like https://app.example.org: lower case, no path, no default port'
    return isOrigin ? text : new Rule(rule)
  },
}

/** The name of a user. */
export const userName: Kind<string> = {
  example: 'me',
  badExample: 'm e',
  parse: (text) => (USER_NAME.test(text) ? text : new Rule(USER_NAME_RULE)),
}

/** What a token is for, in one line. */
export const label: Kind<string> = {
  example: 'the dashboard',
  badExample: 'two\nlines',
  parse: (text) =>
    /^\P{Cc}*$/u.test(text) && text.length >= 1 && text.length <= LABEL_LENGTH_MAX && text.isWellFormed()
      ? text
      : new Rule(`1 to ${LABEL_LENGTH_MAX} characters without control characters`),
}

/** One of a few words. */
export const oneOf = <const T extends string>(words: readonly [T, ...T[]]): Kind<T> => ({
  example: words[0],
  badExample: 'other',
  parse: (text) => words.find((word) => word === text) ?? new Rule(`one of ${words.join(', ')}`),
})

/** A number with its unit, in the smallest unit. `NaN` if the text did not match. */
const parseQuantity = (match: RegExpExecArray | null, units: Readonly<Record<string, number>>): number =>
  Number(match?.[1]) * (units[match?.[2] ?? ''] ?? Number.NaN)
