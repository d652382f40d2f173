// Tested in test/cli/transcripts/listen.txt.
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { type Address, formatAddress } from '../../address.ts'
import { AppError, codeOf } from '../../error.ts'
import { type Handle, SLOW_READER_S } from '../../http/connection.ts'
import { isSurelyFree } from './listeners.ts'
import type { Tls } from './tls.ts'

export type RunningServer = Awaited<ReturnType<typeof listen>>

/** How a server treats its connections. */
export interface ListenOptions {
  /**
   * The runtime closes a connection on which nothing moves for so long: while the client sends a body, while the server prepares
   * an answer, while the client reads (a long answer has `SLOW_READER_S`), and between requests. Its timer has whole seconds
   * up to 255, and steps of four, so it may be four seconds late. At a unix socket it has `SLOW_READER_S` for all of these.
   */
  readonly idleTimeoutMs: number
  /** The flag that names the address. Messages tell the operator to change it. */
  readonly flag: string
  /** The mode of a unix socket. With 0o660, the group of the process may connect. */
  readonly socketMode: number
  /** The certificate; `undefined` for plain HTTP. A new certificate needs a new server. */
  readonly tls: Tls | undefined
  readonly sharing?: Sharing
}

/**
 * Whether several listeners of this process share the address: those of its threads, or one more with a renewed certificate. The
 * leader listens first and keeps other servers away, because the system lets any process of the same user join. Followers join.
 */
export type Sharing = 'none' | 'leader' | 'follower'

/** Listens, or rejects with `address_unavailable`. An address is never shared with another process. */
export async function listen(address: Address, handle: Handle, options: ListenOptions) {
  const scheme = options.tls === undefined ? 'http' : 'https'
  const refusal = (reason: string, cause?: unknown) =>
    new AppError('address_unavailable', {
      message: `Cannot listen on ${formatAddress(address, scheme)}: ${reason}. Choose another with ${options.flag}.`,
      cause,
    })
  if ('socketPath' in address) {
    const reason = await usedBecause(address.socketPath)
    if (reason !== undefined) throw refusal(reason)
    // A killed server may have left it.
    rmSync(address.socketPath, { force: true })
  }
  const server = await (options.sharing === 'leader' ? bindExclusively : serve)(address, handle, options).catch(
    async (cause) => {
      throw refusal(await reasonOf(cause, address), cause)
    },
  )
  if ('socketPath' in address) chmodSync(address.socketPath, options.socketMode)
  const own = 'socketPath' in address ? address : { host: address.host, port: server.port ?? address.port }
  return {
    /** The address that the server listens on, with the port that the system chose, and its URL. */
    address: own,
    url: formatAddress(own, scheme),
    /** Closes the listener and the idle connections, and resolves when the requests under way are answered. */
    async stop(): Promise<void> {
      // Over TLS, the runtime itself would wait until each idle client has answered that its connection ends.
      void server.stop()
      while (server.pendingRequests > 0) await Bun.sleep(STOP_LOOK_MS)
    },
    /** Closes the remaining connections. Returns how many requests were under way on them. */
    kill(): number {
      const requests = server.pendingRequests
      server.stop(true)
      return requests
    },
  }
}

/** How often a server that stops looks whether all requests are answered. */
const STOP_LOOK_MS = 10

/** How long a server waits for another one that starts at the same port, and how often it looks. */
const CLAIM_MAX_WAIT_MS = 2000
const CLAIM_RETRY_MS = 5

/**
 * Listens at an address that followers can join. If another process may listen there, it first listens alone, which fails if one
 * does, and otherwise resets the connections that come meanwhile. Until it shares the address, a lock keeps other starts from
 * doing the same: a socket without a file, named after the port. Without the lock, another start may be about to listen.
 */
async function bindExclusively(address: Address, handle: Handle, options: ListenOptions) {
  if ('socketPath' in address) throw new TypeError('threads cannot share a unix socket')
  using lock = await lockPort(address.port)
  if (lock === undefined || !isSurelyFree(address.host, address.port)) {
    const alone = await serve(address, handle, { ...options, sharing: 'none' })
    alone.stop(true)
  }
  return serve(address, handle, options)
}

async function lockPort(port: number): Promise<Disposable | undefined> {
  const deadlineMs = performance.now() + CLAIM_MAX_WAIT_MS
  for (;;) {
    try {
      const lock = Bun.listen({ unix: `\0plantstore:${port}`, socket: { data() {} } })
      return { [Symbol.dispose]: () => lock.stop(true) }
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw error
      // No start takes so long. Any user can hold such a socket, but must not keep this server from starting.
      if (performance.now() > deadlineMs) return undefined
      await Bun.sleep(CLAIM_RETRY_MS)
    }
  }
}

async function serve(address: Address, handle: Handle, { idleTimeoutMs, tls, sharing = 'none' }: ListenOptions) {
  const options = {
    ...('socketPath' in address
      ? { unix: address.socketPath }
      : { hostname: address.host, port: address.port, reusePort: sharing !== 'none' }),
    ...(tls !== undefined && { tls: tls.context }),
    fetch: handle,
    development: false,
    idleTimeout: 'socketPath' in address ? SLOW_READER_S : idleTimeoutMs / 1000,
    // `readNewPlant` refuses large bodies while they arrive. The runtime would replace that answer by an empty one.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  }
  // Elysia's `listen` would serve the routes without what stands around them. The types lack the idle timeout of unix sockets.
  return Bun.serve(options as Parameters<typeof Bun.serve>[0])
}

/** The errors of the system in the words of an operator. */
const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'this user may not listen there',
  ENAMETOOLONG: 'its path is longer than that of a socket can be',
  ENOENT: 'there is no such directory',
}

/** For an unknown host the runtime reports the error of an earlier system call, so this function looks the host up. */
async function reasonOf(cause: unknown, address: Address): Promise<string> {
  if ('host' in address) {
    const { lookup } = await import('node:dns/promises')
    const found = await lookup(address.host).catch(() => undefined)
    if (found === undefined) return 'there is no such host'
  }
  return LISTEN_FAILURES[codeOf(cause)] ?? String(cause)
}

/** How long the process on a socket may take to answer. A process that does not answer counts as running. */
const PROBE_TIMEOUT_MS = 1000

/**
 * Why a path must not be replaced; `undefined` if no process listens on it. Only ECONNREFUSED and ENOENT prove the latter.
 * If the backlog of a server is full, `connect` fails with EAGAIN, which `node:net` and `Bun.connect` report as ECONNREFUSED.
 * `fetch` reports EAGAIN.
 */
async function usedBecause(path: string): Promise<string | undefined> {
  const file = lstatSync(path, { throwIfNoEntry: false })
  if (file === undefined) return undefined
  if (!file.isSocket()) return 'there is a file that is no socket'
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS)
    await fetch('http://localhost/healthz', { unix: path, redirect: 'manual', signal })
  } catch (cause) {
    const code = codeOf(cause)
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return undefined
    if (code === 'EACCES') return LISTEN_FAILURES.EACCES
  }
  return LISTEN_FAILURES.EADDRINUSE
}
