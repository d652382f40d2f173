// Tested in test/cli/transcripts/streams.txt.
import { createReadStream, fstatSync, write } from 'node:fs'
import { promisify } from 'node:util'
import { exitCodeOf, type Io, type Signal, textOfLines } from './cli/io.ts'

const exitOn = (signal: Signal) => process.exit(exitCodeOf(signal))
let listener: (signal: Signal) => void = exitOn
let isEnding = false
const end = (signal: Signal) => {
  const next = listener
  listener = exitOn
  isEnding = true
  next(signal)
}

// First of all: without a handler the kernel kills the process, or ignores the signal if this is process 1 of a container.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, end)

// Only the user of the process may read new files. `listen` then opens the socket to the group.
process.umask(0o177)

// The driver of PostgreSQL reads these variables. Only our options may say where the database is and how to log in.
for (const name of Object.keys(process.env)) if (name.startsWith('PG')) delete process.env[name]

const STDIN = 0
const STDOUT = 1
const STDERR = 2
/** The device number of /dev/null on Linux: major 1, minor 3. */
const NULL_DEVICE = 0x103
/** How often to try again to write to a full pipe. */
const FULL_PIPE_RETRY_MS = 2

/** For each stream, a promise that ends with its last write. A full stdout does not delay stderr. */
const outputs: Promise<unknown>[] = []
const print = async (descriptor: number, text: string | Uint8Array) => {
  const written = Promise.resolve(outputs[descriptor]).then(() => writeAll(descriptor, text))
  outputs[descriptor] = written.catch(() => undefined)
  await written
}

/** `Bun.write` sends a part twice to a full pipe that does not block (https://github.com/oven-sh/bun/pull/35953). */
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

/** Whether a stream is a terminal. Only a character device can be one, and the module that knows takes milliseconds to load. */
async function isTerminal(descriptor: number): Promise<boolean> {
  const stat = fstatSync(descriptor)
  if (!stat.isCharacterDevice() || stat.rdev === NULL_DEVICE) return false
  const { isatty } = await import('node:tty')
  return isatty(descriptor)
}

/** What to do at a SIGHUP that does not end the process. Those before the listener wait for it. */
const hangupListener = Promise.withResolvers<() => void>()
// A terminal that has been closed later is no terminal any more.
const readsTerminal = await isTerminal(STDIN)
if (process.argv[2] === 'serve')
  process.on('SIGHUP', async () => {
    if (!readsTerminal) (await hangupListener.promise)()
    // When a terminal is closed, the shell and the kernel both send SIGHUP.
    else if (!isEnding) end('SIGHUP')
  })

const uncaught = Promise.withResolvers<never>()
const io: Io = {
  // The executable has its code in a file system of its own.
  program: Bun.main.startsWith('/$bunfs/') ? [process.execPath] : [process.execPath, Bun.main],
  argv: process.argv.slice(2),
  env: process.env,
  print: (text) => print(STDOUT, text),
  // A command also does its work without a reader of stderr.
  report: (lines) => print(STDERR, textOfLines(lines)).catch(() => undefined),
  printsToTerminal: await isTerminal(STDOUT),
  // `Bun.stdin` reads a file from its beginning, even if another program has read a part of it before. `createReadStream` reads
  // only the rest, but fails with EAGAIN if nothing has arrived yet in a pipe that does not block.
  stdin: () => (fstatSync(STDIN).isFile() ? createReadStream('', { fd: STDIN, autoClose: false }) : Bun.stdin.stream()),
  readsTerminal,
  onSignal(next) {
    listener = next
  },
  uncaught: uncaught.promise,
  onHangup: hangupListener.resolve,
  isRunning(pid) {
    // The sandbox of our unit hides the process of the server in /proc from its other commands.
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  },
  nowMs: Date.now,
  monotonicMs: performance.now.bind(performance),
  exit: (code) => process.exit(code),
}

const { run } = await import('./cli/cli.ts')
// From here on `run` prints every error. The runtime would print one in its own form.
process.on('uncaughtException', uncaught.reject).on('unhandledRejection', uncaught.reject)
const exitCode = await run(io)
// Commands wait for their own output, unless a signal stops them.
await outputs[STDERR]
process.exit(exitCode)
