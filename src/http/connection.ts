// Tested in test/fault/slow-clients.test.ts.
/**
 * The server that requests come to. `timeout` sets how long nothing may happen on the connection of a request, until the next
 * request comes on it, but not at a unix socket, which has no `port`. `requestIP` is `null` there, and once the client has gone.
 */
export type Connection = Pick<Bun.Server<undefined>, 'timeout' | 'requestIP' | 'port'>

/** How long a client may take for a part of a long answer, in seconds: the most that the runtime counts. */
export const SLOW_READER_S = 255

/** Answers requests. Within a test there may be no connection. */
export type Handle = (request: Request, connection?: Connection) => Response | Promise<Response>
