// Tested in test/cli/transcripts/listen.txt.
import { existsSync, readFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { orUndefined } from '../../error.ts'

/** The TCP sockets of the system: https://man7.org/linux/man-pages/man5/proc_pid_net.5.html. A kernel can do without IPv6. */
const TABLE = '/proc/self/net/tcp'
const TABLE_IPV6 = '/proc/self/net/tcp6'
/** Names and wildcard addresses. Which other addresses they exclude depends on the system and on options of sockets. */
const UNCLEAR: readonly unknown[] = [undefined, '[::]', '[::ffff:0:0]']

/** Whether certainly nobody listens at an address. It is `false` where the tables of Linux do not tell. */
export function isSurelyFree(host: string, port: number): boolean {
  const tables = orUndefined(
    () => readFileSync(TABLE, 'latin1') + (existsSync(TABLE_IPV6) ? readFileSync(TABLE_IPV6) : ''),
  )
  if (tables === undefined) return false
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0')
  const listener = new RegExp(`^ *\\d+: ([0-9A-F]+):${hexPort} \\S+ 0A `, 'gm')
  const others = Array.from(tables.matchAll(listener), ([, words = '']) => canonical(textOf(words)))
  const own = canonical(host)
  return others.every((other) => other !== own && !UNCLEAR.includes(other) && !UNCLEAR.includes(own))
}

/** The text of an address in a table, which has words in the order of bytes of this machine. */
function textOf(words: string): string {
  const bytes = Buffer.from(words, 'hex').swap32()
  return bytes.length === 4 ? bytes.join('.') : bytes.toString('hex').replace(/....(?!$)/g, '$&:')
}

/** An address in the form of RFC 5952, an IPv4 address as the IPv6 address that is mapped to it; `undefined` for a name. */
const canonical = (host: string) => URL.parse(`http://[${isIPv4(host) ? '::ffff:' : ''}${host}]`)?.hostname
