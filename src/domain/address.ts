// Tested in test/cli/transcripts/listen.txt.
/** Where a server listens. `host` is a name, an IPv4 address, or an IPv6 address without brackets. */
export type Address = { readonly host: string; readonly port: number } | { readonly socketPath: string }

/** A proxy that tells the truth about its clients: it is in this network, or whatever connects to a unix socket. */
export type TrustedProxy = { readonly address: string; readonly prefix: number } | 'unix'

const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

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
