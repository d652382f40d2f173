import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { type Address, formatAddress, type Scheme } from '../domain/address.ts'
import { AppError } from '../domain/error.ts'
import type { Tls } from './tls.ts'

const SOCKET_MODE = 0o600

/** The server that requests come to. */
export interface Connection {
  /** Sets how long nothing may happen on the connection of a request, until the next request comes on it. */
  timeout(request: Request, seconds: number): void
}

/** How long a client may take for a part of a long answer, in seconds: the most that the runtime counts. */
export const SLOW_READER_S = 255

/** A server that listens. */
export interface RunningServer {
  /** Where it listens, with the port that was picked. */
  readonly address: Address
  /** Closes the listener and the idle connections, and resolves when the requests under way are answered. */
  stop(): Promise<void>
  /** Cuts what is left. Returns how many requests that were. */
  kill(): number
}

/** How a server treats its connections. */
export interface ListenOptions {
  /**
   * How long the body of a request may take to arrive, an answer to be made, a client to take a part of it unless it is
   * long (`allowSlowReader`), and a connection to be idle. The runtime counts whole seconds up to 255, in steps of four: it
   * may be four seconds off.
   */
  readonly idleTimeoutMs: number
  /** The flag that names the address, for whoever has to choose another. */
  readonly flag: string
  /** `undefined` where requests come in clear. A new certificate takes a new server. */
  readonly tls: Tls | undefined
}

/** The scheme of the URLs of a server. */
export const schemeOf = ({ tls }: Pick<ListenOptions, 'tls'>): Scheme => (tls === undefined ? 'http' : 'https')

/** Listens, or rejects with `address_unavailable`. An address is never shared with another process. */
export async function listen(address: Address, handle: Handle, options: ListenOptions): Promise<RunningServer> {
  if ('socketPath' in address) await removeStaleSocket(address.socketPath, options.flag)
  const server = await serve(address, handle, options)
  if ('socketPath' in address) chmodSync(address.socketPath, SOCKET_MODE)
  return {
    address: 'socketPath' in address ? address : { host: address.host, port: server.port ?? address.port },
    stop: () => server.stop(),
    kill() {
      const requests = server.pendingRequests
      server.stop(true)
      return requests
    },
  }
}

type Handle = (request: Request, connection: Connection) => Response | Promise<Response>

async function serve(address: Address, handle: Handle, { idleTimeoutMs, flag, tls }: ListenOptions) {
  const options = {
    ...(tls !== undefined && { tls: tls.context }),
    fetch: handle,
    development: false,
    idleTimeout: idleTimeoutMs / 1000,
    // We refuse large bodies ourselves, while they arrive: the runtime would replace our answer by an empty one.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  } as const
  try {
    if ('port' in address)
      return Bun.serve({ ...options, hostname: address.host, port: address.port, reusePort: false })
    // The types know no idle timeout for unix sockets; the runtime keeps it.
    return Bun.serve({ ...options, unix: address.socketPath } as object as Parameters<typeof Bun.serve>[0])
  } catch (cause) {
    throw new AppError('address_unavailable', {
      message: `Cannot listen on ${formatAddress(address, schemeOf({ tls }))}: ${await reasonOf(cause, address)}. Choose another with ${flag}.`,
      cause,
    })
  }
}

/** What the system says, in the words of whoever has to change it. */
const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'this user may not listen there',
  ENAMETOOLONG: 'its path is longer than that of a socket can be',
  ENOENT: 'there is no such directory',
}

/** Of a host that nobody knows the runtime says whatever the last call to the system has left, so it is looked up here. */
async function reasonOf(cause: unknown, address: Address): Promise<string> {
  if ('host' in address && !(await isKnown(address.host))) return 'there is no such host'
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return LISTEN_FAILURES[code] ?? String(cause)
}

async function isKnown(host: string): Promise<boolean> {
  const { lookup } = await import('node:dns/promises')
  return lookup(host).then(
    () => true,
    () => false,
  )
}

/** Removes a socket that a killed server left. Rejects if the path may belong to another process, or is no socket. */
async function removeStaleSocket(path: string, flag: string): Promise<void> {
  const file = lstatSync(path, { throwIfNoEntry: false })
  if (file === undefined) return
  const reason = file.isSocket() ? await usedBecause(path) : 'there is a file that is no socket'
  if (reason !== undefined) {
    throw new AppError('address_unavailable', {
      message: `Cannot listen on unix:${path}: ${reason}. Choose another with ${flag}.`,
    })
  }
  rmSync(path)
}

/** A server that accepts no connection gets this long to answer one. It counts as running either way. */
const PROBE_TIMEOUT_MS = 1000

/**
 * Why a socket must not be replaced; `undefined` if no process listens on it. Only ECONNREFUSED and ENOENT prove that: a
 * server with a full backlog makes `connect` fail with EAGAIN, which `node:net` and `Bun.connect` report as ECONNREFUSED.
 * `fetch` reports the error as it is.
 */
async function usedBecause(path: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS)
    await fetch('http://localhost/healthz', { unix: path, redirect: 'manual', signal })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return undefined
    if (code === 'EACCES') return LISTEN_FAILURES.EACCES
  }
  return LISTEN_FAILURES.EADDRINUSE
}
