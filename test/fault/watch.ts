import type { Answered } from './load.ts'

/** How long is waited for what must happen; long, for a machine that is busy with other things. */
const DEADLINE_MS = 30_000
const LOOK_MS = 5

/** Waits until something holds. Rejects with what it was if it does not come about: then a fault was never hit. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + DEADLINE_MS
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came about that ${what}`)
    await Bun.sleep(LOOK_MS)
  }
}

/** The exit code of a server that must end by itself. Rejects if it goes on. */
export async function untilEnded(server: { ended(): Promise<number> }): Promise<number> {
  let exitCode: number | undefined
  void server.ended().then((code) => {
    exitCode = code
  })
  await until('the server ended', () => exitCode !== undefined)
  return server.ended()
}

/** Counts the answers of loads: those of success, and of the others what a client can tell them by. */
export function countAnswers() {
  const refusals = new Map<string, number>()
  let successes = 0
  return {
    /** For `onAnswer` of a load. */
    record({ status, headers, body }: Answered): void {
      if (status < 300) {
        successes++
        return
      }
      const refusal = `${status} ${JSON.parse(body).error}, Retry-After: ${headers.get('retry-after')}`
      refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1)
    },
    successes: () => successes,
    /** Every sort of refusal that came, like `503 50301, Retry-After: 1`. */
    refusals: (): string[] => [...refusals.keys()],
    refused: (): number => [...refusals.values()].reduce((sum, count) => sum + count, 0),
  }
}

/** What is asked of a server here. */
interface Server {
  request(method: string, path: string, options: { readonly token: string }): Promise<Response>
}

/** Lists plants again and again, until it is stopped or cut. */
export function watchLists(server: Server, token: string) {
  const statuses = new Map<number, number>()
  let isStopped = false
  const watch = async () => {
    while (!isStopped) {
      const response = await server.request('GET', '/plants?limit=100', { token })
      await response.text()
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    }
  }
  const watching = watch().catch(() => undefined)
  return {
    /** How many lists were answered so far. */
    count: () => statuses.values().reduce((sum, count) => sum + count, 0),
    /** Resolves to the statuses that there were. */
    async stop(): Promise<number[]> {
      isStopped = true
      await watching
      return [...statuses.keys()]
    },
  }
}

/** Why a server said that its store has failed, from its log: it says so once, if at all. */
export const fatalReasons = (server: { stdout(): string }): string[] =>
  server
    .stdout()
    .split('\n')
    .filter((line) => line.includes('"level":"fatal"'))
    .map((line) => JSON.parse(line).reason)
