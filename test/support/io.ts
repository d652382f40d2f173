import { type Io, textOfLines } from '../../src/cli/io.ts'

/** A process for commands that are run inside a test: its arguments and variables, and what the command wrote. */
export function makeIo(argv: readonly string[] = [], env: Io['env'] = {}) {
  let stdout = ''
  let stderr = ''
  const io: Io = {
    program: ['plantstore'],
    argv,
    env,
    async print(text) {
      stdout += text
    },
    async report(lines) {
      stderr += textOfLines(lines)
    },
    printsToTerminal: false,
    stdin: async function* () {},
    readsTerminal: false,
    onSignal: () => {},
    uncaught: new Promise(() => {}),
    onHangup: () => {},
    isRunning: () => false,
    nowMs: Date.now,
    monotonicMs: performance.now,
    exit(code) {
      throw new Error(`exit ${code}`)
    },
  }
  return { io, stdout: () => stdout, stderr: () => stderr }
}
