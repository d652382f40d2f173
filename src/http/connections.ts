import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'

/** The files that an epoll of this process watches: https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html. */
const FD_INFOS = '/proc/self/fdinfo'
/** The TCP sockets of the system: https://man7.org/linux/man-pages/man5/proc_pid_net.5.html. */
const TCP_TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
/** The states of a socket there: it listens, or it is a connection that a process may have. */
const LISTENS = '0A'
const IS_CONNECTION = '(?!0A|06)..'

/**
 * Returns a function that counts the connections at a port which this thread has accepted: `undefined` if the system does not say.
 * The runtime has no such count. A thread waits for its sockets with an epoll of its own.
 */
export function connectionCounter(port: number): () => Promise<number | undefined> {
  let epoll: string | undefined
  return async () => {
    epoll ??= await findEpoll()
    if (epoll === undefined) return undefined
    const [watched, connections] = await Promise.all([watchedBy(epoll), socketsAt(port, IS_CONNECTION)])
    return connections.filter((connection) => watched.has(connection)).length
  }
}

/** The epoll of this thread is the one that watches a socket which this thread has opened. */
async function findEpoll(): Promise<string | undefined> {
  if (!existsSync(FD_INFOS)) return undefined
  using own = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const sockets = await socketsAt(own.port, LISTENS)
  // It is one of the first files that a thread opens, so this reads few of them.
  for (const name of await readdir(FD_INFOS)) {
    const path = `${FD_INFOS}/${name}`
    const watched = await watchedBy(path)
    if (sockets.some((socket) => watched.has(socket))) return path
  }
  return undefined
}

/** The inodes of what an open file watches: nothing, unless it is an epoll. */
async function watchedBy(path: string): Promise<ReadonlySet<number>> {
  // Other files may be closed meanwhile.
  const text = await Bun.file(path)
    .text()
    .catch(() => '')
  return new Set(Array.from(text.matchAll(/ ino:([0-9a-f]+)/g), ([, inode = '']) => Number.parseInt(inode, 16)))
}

/** The inodes of the TCP sockets at a local port that are in such a state. */
async function socketsAt(port: number, state: string): Promise<readonly number[]> {
  const tables = await Promise.all(TCP_TABLES.filter(existsSync).map((path) => Bun.file(path).text()))
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0')
  const row = new RegExp(`^ *\\d+: [0-9A-F]+:${hexPort} \\S+ ${state}(?: +\\S+){5} +(\\d+)`, 'gm')
  return Array.from(tables.join('').matchAll(row), ([, inode]) => Number(inode))
}
