import { IS_LONG } from './long.ts'

/** Long, for a machine that is busy with other things. The long forms also have more to do. */
const LIMIT_MS = IS_LONG ? 600_000 : 120_000
const LOOK_MS = 5

/** How much of what was seen last a message has. */
const SEEN_MAX_LENGTH = 4000

type Found<T> = T | false | undefined
/** Returns a value, and keeps it for the message. */
type See = <V>(value: V) => V

/**
 * Waits until a condition holds or something is found, and returns it. Rejects with its name after the limit, and with what it has
 * seen last: `until('it is ready', async (see) => see(await ask()).status === 200)`.
 */
export async function until<T>(
  name: string,
  find: (see: See) => Found<T> | Promise<Found<T>>,
  { limitMs = LIMIT_MS, lookMs = LOOK_MS } = {},
): Promise<T> {
  const deadlineMs = performance.now() + limitMs
  let seen = ''
  const see: See = (value) => {
    seen = typeof value === 'string' ? value : Bun.inspect(value)
    return value
  }
  do {
    const found = await find(see)
    if (found !== undefined && found !== false) return found
    await Bun.sleep(lookMs)
  } while (performance.now() <= deadlineMs)
  throw new Error(`it never came about that ${name}${seen && `; seen last:\n${seen.slice(-SEEN_MAX_LENGTH)}`}`)
}

/** The exit code of a server that must end by itself. Rejects if the server goes on. */
export async function untilEnded(server: { ended(): Promise<number> }): Promise<number> {
  let exitCode: number | undefined
  void server.ended().then((code) => {
    exitCode = code
  })
  return until('the server ended', () => exitCode)
}
