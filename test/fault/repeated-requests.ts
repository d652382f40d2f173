import type { Server } from './test-database.ts'

/** Sends a GET request again and again, each after the last answer, until it is stopped or cut. */
export function repeatRequest({ request }: Pick<Server, 'request'>, path: string, token?: string, pauseMs = 0) {
  const statuses = new Set<number>()
  let count = 0
  let isStopped = false
  const work = async () => {
    while (!isStopped) {
      const response = await request('GET', path, token === undefined ? {} : { token })
      await response.text()
      statuses.add(response.status)
      count++
      if (pauseMs > 0) await Bun.sleep(pauseMs)
    }
  }
  const working = work().catch(() => statuses.add(0))
  return {
    /** How many answers have come. */
    count: () => count,
    /** Resolves to all statuses; 0 stands for a connection that was cut. */
    async stop(): Promise<number[]> {
      isStopped = true
      await working
      return [...statuses]
    },
  }
}

/** Leaves the processor to the writes, and to other tests. */
const LIST_PAUSE_MS = 2

/** Lists plants again and again. */
export const repeatLists = (server: Pick<Server, 'request'>, token: string) =>
  repeatRequest(server, '/plants?limit=100', token, LIST_PAUSE_MS)
