import { parsePostgresUrl } from '../../src/database-url.ts'
import { startRelay, type Target } from './relay.ts'

/** Starts a relay before a PostgreSQL server. */
export function startPostgresProxy(serverUrl: string) {
  const relay = startRelay(targetOf(serverUrl))
  return {
    ...relay,
    /** The URL of the same database through the proxy. */
    by(url: string): string {
      const { pathname, username } = new URL(url)
      return `postgres://${username}@127.0.0.1:${relay.port}${pathname}?sslmode=disable`
    },
    /** Leads new connections to another server, and cuts the present ones. */
    leadTo: (url: string): void => relay.leadTo(targetOf(url)),
  }
}

function targetOf(url: string): Target {
  const address = parsePostgresUrl(url)
  if (typeof address === 'string') throw new Error(address)
  const { host, port } = address
  return host.startsWith('/') ? { unix: `${host}/.s.PGSQL.${port}` } : { hostname: host, port }
}
