import type { Server } from './test-database.ts'

/** Lists plants one list after the other, until it is stopped or cut. */
export function watchLists(server: Pick<Server, 'request'>, token: string) {
  const statuses = new Set<number>()
  let count = 0
  let isStopped = false
  const watch = async () => {
    while (!isStopped) {
      const response = await server.request('GET', '/plants?limit=100', { token })
      await response.text()
      statuses.add(response.status)
      count++
    }
  }
  const watching = watch().catch(() => undefined)
  return {
    /** How many lists have been answered. */
    count: () => count,
    /** Resolves to the statuses of all lists. */
    async stop(): Promise<number[]> {
      isStopped = true
      await watching
      return [...statuses]
    },
  }
}
