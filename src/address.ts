// Tested in test/cli/transcripts/listen.txt.
import { resolve } from 'node:path'

/** Where a server listens. `host` is a name, an IPv4 address, or an IPv6 address without brackets. */
export type Address = { readonly host: string; readonly port: number } | { readonly socketPath: string }

/** A proxy that tells the truth about its clients: it is in this network, or whatever connects to a unix socket. */
export type TrustedProxy = { readonly address: string; readonly prefix: number } | 'unix'

const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Whether only one server of this machine can listen at both addresses, as far as names and numbers tell. */
export function areSame(one: Address, other: Address): boolean {
  if ('socketPath' in one || 'socketPath' in other)
    return 'socketPath' in one && 'socketPath' in other && resolve(one.socketPath) === resolve(other.socketPath)
  const [a = '', b = ''] = [one, other].map(({ host }) => (/^localhost$/i.test(host) ? '127.0.0.1' : host))
  const takes = (wildcard: string, host: string) => wildcard === '::' || (wildcard === '0.0.0.0' && !host.includes(':'))
  return one.port === other.port && one.port !== 0 && (a === b || takes(a, b) || takes(b, a))
}

/** An address as text: a URL, or `unix:` and a path. IPv6 is in brackets (RFC 3986 §3.2.2). */
export function formatAddress(address: Address, scheme: 'http' | 'https'): string {
  if ('socketPath' in address) return `unix:${address.socketPath}`
  const { host, port } = address
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Whether nobody on the way can change what is fetched from a URL: it has TLS, or is on this machine. */
export function isSafeAddress(url: string): boolean {
  const { protocol, hostname } = URL.parse(url) ?? {}
  return (
    protocol === 'https:' || (protocol === 'http:' && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(`${hostname}`))
  )
}

/** The address at which a client on this machine reaches a server. A wildcard becomes the loopback of its family. */
export const clientTarget = (address: Address): Address =>
  'socketPath' in address ? address : { ...address, host: LOOPBACK_OF[address.host] ?? address.host }
