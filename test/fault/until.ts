import { rounds } from './rounds.ts'

/** Long, for a machine that is busy with other things. The long forms also have more to do. */
const LIMIT_MS = rounds(30_000, 600_000)
const LOOK_MS = 5

/** Waits until a condition holds. Rejects with its name after the limit: then a fault was never hit. */
export async function until(name: string, holds: () => boolean | Promise<boolean>, limitMs = LIMIT_MS): Promise<void> {
  const deadlineMs = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came about that ${name}`)
    await Bun.sleep(LOOK_MS)
  }
}

/** The exit code of a server that must end by itself. Rejects if the server goes on. */
export async function untilEnded(server: { ended(): Promise<number> }): Promise<number> {
  let exitCode: number | undefined
  void server.ended().then((code) => {
    exitCode = code
  })
  await until('the server ended', () => exitCode !== undefined)
  return server.ended()
}
