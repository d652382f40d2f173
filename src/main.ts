import { fstatSync, write } from 'node:fs'
import { promisify } from 'node:util'
import type { Io, Signal } from './cli/io.ts'

const pending: Signal[] = []
let listener: ((signal: Signal) => void) | undefined

// Before anything that takes time: without a handler a signal during the start would kill.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => (listener === undefined ? pending.push(signal) : listener(signal)))
}

// Databases and sockets are nobody else's.
process.umask(0o177)

// Where the database is, and how to get in, the options say alone: its driver would listen to these as well.
for (const name of Object.keys(process.env)) if (name.startsWith('PG')) delete process.env[name]

const STDOUT = 1
const STDERR = 2
/** How often it is looked whether a full pipe has room. */
const FULL_PIPE_RETRY_MS = 2

/** Ends when all that was written to a stream so far is. A full stdout holds up nothing on stderr. */
const outputs: Promise<unknown>[] = []
const print = async (descriptor: number, text: string | Uint8Array) => {
  const written = Promise.resolve(outputs[descriptor]).then(() => writeAll(descriptor, text))
  outputs[descriptor] = written.catch(() => undefined)
  await written
}

/**
 * Not by `Bun.write`, which sends twice what a pipe had room for if that does not block, as whoever started this process may
 * have left it (https://github.com/oven-sh/bun/pull/35953).
 */
async function writeAll(descriptor: number, text: string | Uint8Array): Promise<void> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  for (let at = 0; at < bytes.length; ) {
    try {
      at += await promisify(write)(descriptor, bytes, at).then(({ bytesWritten }) => bytesWritten)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
      await Bun.sleep(FULL_PIPE_RETRY_MS)
    }
  }
}

/** Whether somebody looks at it. Only of what may be a terminal that is asked: the module that knows takes milliseconds to load. */
async function isTerminal(descriptor: number): Promise<boolean> {
  try {
    if (!fstatSync(descriptor).isCharacterDevice()) return false
  } catch {
    // It was closed by whoever started this process.
    return false
  }
  const { isatty } = await import('node:tty')
  return isatty(descriptor)
}

const tellsTerminal = await isTerminal(STDERR)
const io: Io = {
  argv: process.argv.slice(2),
  env: process.env,
  print: (text) => print(STDOUT, text),
  // Where nobody listens the work is done all the same.
  tell: (text) => print(STDERR, text).catch(() => undefined),
  // What `process.stderr` is asked for makes it non-blocking, for all who share it.
  terminal: () => (tellsTerminal ? process.stderr : undefined),
  printsToTerminal: await isTerminal(STDOUT),
  readStdin: () => Bun.stdin.text(),
  stdin: () => Bun.stdin.stream(),
  onSignal(next) {
    listener = next
    for (const signal of pending.splice(0)) next(signal)
  },
  randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  nowMs: Date.now,
  monotonicMs: () => performance.now(),
  exit: (code) => process.exit(code),
}

const { run } = await import('./cli/cli.ts')
const exitCode = await run(io)
// Commands wait for what they print themselves, unless a signal stops them.
await outputs[STDERR]
process.exit(exitCode)
