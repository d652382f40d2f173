import { IS_LONG } from './long.ts'

/** Long, for a machine that is busy with other things. The long forms also have more to do. */
const LIMIT_MS = IS_LONG ? 600_000 : 120_000
const LOOK_MS = 5

type Found<T> = T | false | undefined

/** Waits until a condition holds or something is found, and returns it. Rejects with its name after the limit. */
export async function until<T>(
  name: string,
  find: () => Found<T> | Promise<Found<T>>,
  { limitMs = LIMIT_MS, lookMs = LOOK_MS } = {},
): Promise<T> {
  const deadlineMs = performance.now() + limitMs
  do {
    const found = await find()
    if (found !== undefined && found !== false) return found
    await Bun.sleep(lookMs)
  } while (performance.now() <= deadlineMs)
  throw new Error(`it never came about that ${name}`)
}

/** The exit code of a server that must end by itself. Rejects if the server goes on. */
export async function untilEnded(server: { ended(): Promise<number> }): Promise<number> {
  let exitCode: number | undefined
  void server.ended().then((code) => {
    exitCode = code
  })
  return until('the server ended', () => exitCode)
}
