import { isIPv6 } from 'node:net'
import type { Address } from './domain/address.ts'
import { isPostgresUrl, looksLikeServer, parsePostgresUrl } from './domain/database-url.ts'
import { LIMIT_MAX } from './domain/store.ts'
import { USER_NAME, USER_NAME_RULE } from './domain/user.ts'

/** Why a text was refused: what it must be. */
export class Rule {
  constructor(readonly text: string) {}
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const UNITS_BYTES: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2 }
const SIZE_MAX_BYTES = 1024 ** 3
const PORT_MAX = 65535
const LABEL_LENGTH_MAX = 200
const REQUESTS_MAX = 1_000_000

/** A whole number with a unit, in milliseconds, from `minText` to `maxText`. */
export function duration(minText: string, maxText = '36500d'): (text: string) => number | Rule {
  return (text) => {
    const ms = parseDuration(text)
    const isWithin = ms >= parseDuration(minText) && ms <= parseDuration(maxText)
    return isWithin ? ms : new Rule(`a whole number with a unit, s m h or d, from ${minText} to ${maxText}`)
  }
}

const parseDuration = (text: string): number => times(/^(\d{1,12})([smhd])$/.exec(text), UNITS_MS)

/** A whole number with a unit, in bytes. */
export function parseSize(text: string): number | Rule {
  const bytes = times(/^(\d{1,12})(B|KiB|MiB)$/.exec(text), UNITS_BYTES)
  return bytes >= 1 && bytes <= SIZE_MAX_BYTES
    ? bytes
    : new Rule('a size with a unit, B KiB or MiB, like 64KiB, from 1B to 1024MiB')
}

/** How many there may be of something. */
export function parseCount(text: string): number | Rule {
  const count = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN
  return count <= LIMIT_MAX ? count : new Rule(`a whole number from 1 to ${LIMIT_MAX}`)
}

/** How many requests a token may make in what time. */
export interface Rate {
  readonly requests: number
  readonly periodMs: number
}

/** A number of requests and a unit of time. */
export function parseRate(text: string): Rate | Rule {
  const [, digits, unit = ''] = /^([1-9]\d{0,6})\/([smh])$/.exec(text) ?? []
  const requests = Number(digits)
  return requests <= REQUESTS_MAX
    ? { requests, periodMs: UNITS_MS[unit] ?? Number.NaN }
    : new Rule(`a number of requests from 1 to ${REQUESTS_MAX} with /s, /m or /h, like 100/s`)
}

/** How many requests a token may make besides. */
export function parseBurst(text: string): number | Rule {
  const requests = /^[1-9]\d{0,6}$/.test(text) ? Number(text) : Number.NaN
  return requests <= REQUESTS_MAX ? requests : new Rule(`a whole number from 1 to ${REQUESTS_MAX}`)
}

/** `HOST:PORT`, with an IPv6 address in brackets, or `unix:` and a path. */
export function parseAddress(text: string): Address | Rule {
  if (/^unix:.+/.test(text)) return { socketPath: text.slice('unix:'.length) }
  const [, ipv6, name, digits] = /^(?:\[([^\]]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text) ?? []
  const host = ipv6 ?? name
  const port = Number(digits)
  if (host === undefined || port > PORT_MAX || (ipv6 !== undefined && !isIPv6(ipv6)))
    return new Rule('HOST:PORT, [IPV6]:PORT or unix:/path, with a port up to 65535')
  return { host, port }
}

/** The path of a SQLite file, or the URL of a PostgreSQL database. One in memory would not be what the operator expects. */
export function parseDatabase(text: string): string | Rule {
  if (isPostgresUrl(text)) {
    const address = parsePostgresUrl(text)
    return typeof address === 'string' ? new Rule(address) : text
  }
  if (text === '' || text.includes('\0') || text === ':memory:' || looksLikeServer(text)) {
    return new Rule('the path of a file, or postgres://USER@HOST/DATABASE')
  }
  return text
}

/** The path of a file. */
export const parsePath = (text: string): string | Rule =>
  text === '' || text.includes('\0') ? new Rule('the path of a file') : text

/** An http or https URL to which paths can be appended; without its last slash. */
export function parseUrl(text: string): string | Rule {
  const isPlain = /^https?:\/\/[^\s?#@\\]+$/.test(text) && URL.canParse(text)
  return isPlain ? text.replace(/\/+$/, '') : new Rule('an http or https URL without user, query and fragment')
}

/** An origin as browsers send it (Fetch standard §3.1): what is written otherwise would never be met. */
export function parseOrigin(text: string): string | Rule {
  const isOrigin = /^https?:\/\/[a-z0-9._:[\]-]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text
  const rule =
    'origins as browsers send them, like https://app.example.org: lower case, no path, and no port that goes without saying'
  return isOrigin ? text : new Rule(rule)
}

/** The name of a user. */
export const parseUserName = (text: string): string | Rule => (USER_NAME.test(text) ? text : new Rule(USER_NAME_RULE))

/** What a token is for, in one line. */
export const parseLabel = (text: string): string | Rule =>
  /^\P{Cc}*$/u.test(text) && text.length >= 1 && text.length <= LABEL_LENGTH_MAX && text.isWellFormed()
    ? text
    : new Rule(`1 to ${LABEL_LENGTH_MAX} characters without control characters`)

/** One of a few words. */
export const oneOf =
  <const T extends string>(choices: readonly T[]) =>
  (text: string): T | Rule =>
    choices.find((choice) => choice === text) ?? new Rule(`one of ${choices.join(', ')}`)

/** Digits and a unit as a number of the smallest unit; NaN where there was no match. */
const times = (match: RegExpExecArray | null, units: Readonly<Record<string, number>>): number =>
  Number(match?.[1]) * (units[match?.[2] ?? ''] ?? Number.NaN)
