import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readFileSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface ProgramOptions {
  /** The whole environment; the environment of this process if left out. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  /** The text that the program reads. */
  readonly stdin?: string | Uint8Array<ArrayBuffer>
}

/**
 * Starts a program. `stdout` and `stderr` return what it has printed so far; `ended` resolves to all of it and the exit code.
 *
 * It prints into files, because Bun 1.4.5 sometimes misses the end of a pipe when many tests run at once: the program had
 * ended, and epoll still had the pipe, disarmed after an event. One run of all tests in twenty waited for that for ever.
 */
export function startProgram(command: readonly string[], { env, cwd, stdin }: ProgramOptions = {}) {
  const [stdout, stderr] = [openOutput(), openOutput()]
  const child = Bun.spawn([...command], {
    ...(env !== undefined && { env }),
    ...(cwd !== undefined && { cwd }),
    stdin: stdin === undefined ? 'ignore' : new Blob([stdin]),
    stdout: stdout.fd,
    stderr: stderr.fd,
  })
  const ended = child.exited.then((exitCode) => ({ stdout: stdout.close(), stderr: stderr.close(), exitCode }))
  return { child, stdout: stdout.text, stderr: stderr.text, ended }
}

/** Runs a program to its end. Resolves to its output and its exit code. */
export const runProgram = (command: readonly string[], options?: ProgramOptions) => startProgram(command, options).ended

/** Opens a file without a name for the output of a program. `close` returns all of it. */
function openOutput() {
  const path = join(tmpdir(), `plantstore-output-${randomUUID()}`)
  const fd = openSync(path, 'ax+', 0o600)
  unlinkSync(path)
  let whole: string | undefined
  const text = () => whole ?? readFileSync(`/proc/self/fd/${fd}`, 'utf8')
  const close = () => {
    whole = text()
    closeSync(fd)
    return whole
  }
  return { fd, text, close }
}
