import { COMMAND } from './executable.ts'

/** The shell waits until the test has read all output: the runtime may drop the rest when a process ends. */
const SCRIPT = 'trap : INT; "$@"; echo "exit $?"; read -r _'
const CTRL_C = '\u0003'

interface TerminalOptions {
  readonly term?: string
  /** Types Ctrl-C once the command has written this. */
  readonly interruptAt?: string
}

/** Runs a command on a terminal of its own. Resolves to its output and its exit code. */
export async function runOnTerminal(args: readonly string[], { term = 'xterm', interruptAt }: TerminalOptions = {}) {
  const decoder = new TextDecoder()
  let text = ''
  let isInterrupted = interruptAt === undefined
  const child = Bun.spawn(['sh', '-c', SCRIPT, 'sh', ...COMMAND, ...args], {
    env: { PATH: process.env.PATH ?? '', TERM: term },
    terminal: {
      cols: 200,
      rows: 24,
      data(terminal, chunk) {
        text += decoder.decode(chunk, { stream: true })
        if (!isInterrupted && text.includes(interruptAt ?? '')) {
          isInterrupted = true
          terminal.write(CTRL_C)
        }
        if (/exit \d+\r\n$/.test(text)) terminal.write('\n')
      },
    },
  })
  await child.exited
  const [, written = '', exitCode] = /^(.*)exit (\d+)\r\n/s.exec(text) ?? []
  return { text: written, exitCode: Number(exitCode) }
}
