// Tested in test/cli/transcripts/listen.txt.
import { BlockList, isIP } from 'node:net'
import type { TrustedProxy } from '../address.ts'
import type { Connection } from './connection.ts'

/** How many elements of the header count, from the right: more than a chain of proxies has. A client can send thousands. */
export const HOPS_MAX = 16

/**
 * Returns a function that finds the address of the client of a request: the right-most one in `X-Forwarded-For` that is not of a
 * trusted proxy. It is `undefined` if the connection is a unix socket and the header has no address. The header counts only on
 * connections of trusted proxies. The search ends at an element without an address, and then at the proxy that wrote it.
 */
export function clientAddressFinder(proxies: readonly TrustedProxy[] = []) {
  const networks = new BlockList()
  for (const proxy of proxies) {
    if (proxy !== 'unix') networks.addSubnet(proxy.address, proxy.prefix, familyOf(proxy.address))
  }
  const isTrusted = (address: string | undefined): boolean =>
    address === undefined ? proxies.includes('unix') : networks.check(address, familyOf(address))

  return (request: Request, connection: Connection | undefined): string | undefined => {
    let address = connection?.requestIP(request)?.address.replace(MAPPING, '')
    // A proxy that writes `Forwarded` (RFC 7239) may let the `X-Forwarded-For` of a client pass.
    if (proxies.length === 0 || request.headers.has('forwarded')) return address
    const elements = request.headers.get('x-forwarded-for')?.split(',').slice(-HOPS_MAX) ?? []
    for (const element of elements.reverse()) {
      const before = isTrusted(address) ? addressIn(element.trim()) : undefined
      if (before === undefined) break
      address = before
    }
    return address
  }
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** IPv4 clients of a socket for both families have addresses like `::ffff:192.0.2.1` (RFC 4291 §2.5.5.2). */
const MAPPING = /^::ffff:(?=\d+\.)/i

/** An address (IPv6 in brackets) with or without a port, or only an IPv6 address. */
const NODE = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::\d+)?$|^([\da-f:.]+)$/i

function addressIn(node: string): string | undefined {
  const [, ipv6, ipv4, bare] = NODE.exec(node) ?? []
  const address = ipv6 ?? ipv4 ?? bare ?? ''
  return isIP(address) === 0 ? undefined : address.replace(MAPPING, '')
}
