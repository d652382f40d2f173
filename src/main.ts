import type { BunFile } from 'bun'
import type { Io, Signal } from './cli/io.ts'

const pending: Signal[] = []
let listener: ((signal: Signal) => void) | undefined

// Before anything that takes time: without a handler a signal during the start would kill.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => (listener === undefined ? pending.push(signal) : listener(signal)))
}

// Databases and sockets are nobody else's.
process.umask(0o177)

let output: Promise<unknown> = Promise.resolve()
const write = async (file: BunFile, text: string) => {
  const written = output.then(() => Bun.write(file, text))
  output = written.catch(() => undefined)
  await written
}

const io: Io = {
  argv: process.argv.slice(2),
  env: process.env,
  print: (text) => write(Bun.stdout, text),
  // Where nobody listens the work is done all the same.
  tell: (text) => write(Bun.stderr, text).catch(() => undefined),
  terminal: process.stderr.isTTY ? process.stderr : undefined,
  readStdin: () => Bun.stdin.text(),
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
await output
process.exit(exitCode)
