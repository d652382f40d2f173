import { BlockList, isIP } from 'node:net'
import type { TrustedProxy } from '../domain/address.ts'
import type { Connection } from './server.ts'

/** How many elements of a header count, from the right: more than a chain of proxies has. A client can send thousands. */
export const HOPS_MAX = 16

/**
 * Returns a function that finds the address of the client of a request: the right-most address that is not of a trusted proxy.
 * It is `undefined` if the connection is a unix socket and no header has an address. The headers count only on connections of
 * trusted proxies. The search ends at an element without an address, and then at the proxy that wrote it.
 */
export function clientAddressFinder(proxies: readonly TrustedProxy[]) {
  const networks = new BlockList()
  for (const proxy of proxies) {
    if (proxy !== 'unix') networks.addSubnet(proxy.address, proxy.prefix, familyOf(proxy.address))
  }
  const isTrusted = (address: string | undefined): boolean =>
    address === undefined ? proxies.includes('unix') : networks.check(address, familyOf(address))

  return (request: Request, connection: Connection | undefined): string | undefined => {
    const ip = connection?.requestIP(request)?.address
    const peer = ip && withoutMapping(ip)
    if (proxies.length === 0 || !isTrusted(peer)) return peer
    const found = new Set<string | undefined>()
    for (const [name, nodeOf] of HEADERS) {
      const header = request.headers.get(name)
      if (!header) continue
      let address = peer
      for (const element of header.split(',').slice(-HOPS_MAX).reverse()) {
        const before = isTrusted(address) ? addressIn(nodeOf(element)) : undefined
        if (before === undefined) break
        address = before
      }
      found.add(address)
    }
    // If the headers disagree, the client may have sent the one that the proxy does not write.
    return found.size === 1 ? [...found][0] : peer
  }
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** IPv4 clients of a socket for both families have addresses like `::ffff:192.0.2.1` (RFC 4291 §2.5.5.2). */
const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/**
 * An element of `Forwarded` with one `for` (RFC 7239 §4). A comma in quotes cuts an element in two, and neither part matches:
 * outside of quotes there is no quote and no backslash. So no quote of a client swallows the elements behind it.
 */
const VALUE = String.raw`"(?:[^"\\]|\\.)*"|[^"\\;\s]+`
const OTHER_PAIR = String.raw`[ \t]*(?!for=)[^"\\;=\s]+=(?:${VALUE})[ \t]*`
const ELEMENT = new RegExp(`^(?:${OTHER_PAIR};)*[ \\t]*for=(${VALUE})[ \\t]*(?:;${OTHER_PAIR})*$`, 'i')

/** The headers, and the node that an element of each names. */
const HEADERS = [
  ['forwarded', (element: string) => ELEMENT.exec(element)?.[1]?.replace(/^"(.*)"$/, '$1') ?? ''],
  ['x-forwarded-for', (element: string) => element.trim()],
] as const

/** An address (IPv6 in brackets) with or without a port, or an IPv6 address alone. `unknown` and `_hidden` are none (RFC 7239 §6). */
const NODE = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::[\w.-]+)?$|^([\da-f:.]+)$/i

function addressIn(node: string): string | undefined {
  const [, ipv6, ipv4, bare] = NODE.exec(node) ?? []
  const address = ipv6 ?? ipv4 ?? bare ?? ''
  return isIP(address) === 0 ? undefined : withoutMapping(address)
}
