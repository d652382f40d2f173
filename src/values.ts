import { isIPv6 } from 'node:net'
import { USER_NAME, USER_NAME_RULE } from './domain/user.ts'
import type { Address } from './http/address.ts'
import { LIMIT_MAX } from './http/query.ts'

/** Why a text was refused: what it must be. */
export class Rule {
  constructor(readonly text: string) {}
}

const DURATION_UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const SIZE_UNITS_BYTES = { B: 1, KiB: 1024, MiB: 1024 ** 2 } as const
const DURATION_MAX_MS = 36_500 * DURATION_UNITS_MS.d
const SIZE_MAX_BYTES = 1024 * SIZE_UNITS_BYTES.MiB
const PORT_MAX = 65535
const LABEL_LENGTH_MAX = 200

/** A whole number with a unit, in milliseconds. */
export function parseDuration(text: string): number | Rule {
  const [, digits, unit] = /^(\d{1,12})([smhd])$/.exec(text) ?? []
  const ms = Number(digits) * DURATION_UNITS_MS[unit as keyof typeof DURATION_UNITS_MS]
  return ms <= DURATION_MAX_MS ? ms : new Rule('a whole number with a unit, s m h or d, like 90d, at most 36500d')
}

/** A whole number with a unit, in bytes. */
export function parseSize(text: string): number | Rule {
  const [, digits, unit] = /^(\d{1,12})(B|KiB|MiB)$/.exec(text) ?? []
  const bytes = Number(digits) * SIZE_UNITS_BYTES[unit as keyof typeof SIZE_UNITS_BYTES]
  return bytes >= 1 && bytes <= SIZE_MAX_BYTES
    ? bytes
    : new Rule('a size with a unit, B KiB or MiB, like 64KiB, from 1B to 1024MiB')
}

/** How many plants an answer may hold. */
export function parseCount(text: string): number | Rule {
  const count = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN
  return count <= LIMIT_MAX ? count : new Rule(`a whole number from 1 to ${LIMIT_MAX}`)
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

/** The path of a SQLite file. A database in memory or behind a URL would not be what the operator expects. */
export function parseDatabase(text: string): string | Rule {
  if (text === '' || text.includes('\0') || text === ':memory:' || /^[a-z+]+:\/\//i.test(text)) {
    return new Rule('the path of a file')
  }
  return text
}

/** An http or https URL to which paths can be appended; without its last slash. */
export function parseUrl(text: string): string | Rule {
  const isPlain = /^https?:\/\/[^\s?#@\\]+$/.test(text) && URL.canParse(text)
  return isPlain ? text.replace(/\/+$/, '') : new Rule('an http or https URL without user, query and fragment')
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
