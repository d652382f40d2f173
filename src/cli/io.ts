// Tested in test/cli/transcripts/streams.txt.
import type { Clocks } from '../clocks.ts'
import { escapeControls } from '../controls.ts'

/** The process as the commands see it. Only main.ts knows the real one. */
export interface Io extends Clocks {
  /** The words with which a shell runs this program again. */
  readonly program: readonly string[]
  /** The arguments after the name of the executable. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Prints a result on stdout. Rejects with the error of the system: with `EPIPE` if the reader has gone. */
  print(text: string | Uint8Array): Promise<void>
  /** Prints a line for people on stderr, or several lines, as `textOfLines`. */
  report(lines: string | readonly string[]): Promise<void>
  readonly printsToTerminal: boolean
  stdin(): AsyncIterable<Uint8Array>
  readonly readsTerminal: boolean
  /** The first signal calls the latest listener. A second one, or one before any listener, ends the process with `exitCodeOf`. */
  onSignal(listener: (signal: Signal) => void): void
  /** Rejects with an error that nobody has caught. */
  readonly uncaught: Promise<never>
  /**
   * Calls the listener at each SIGHUP of `serve`, also for those that came before. If stdin is a terminal, SIGHUP asks to end
   * instead, because the terminal was closed. SIGHUP kills other commands.
   */
  onHangup(listener: () => void): void
  /** Whether a process of this user runs. */
  isRunning(pid: number): boolean
  exit(code: number): never
}

/** Lines for people on stderr. Control characters, line feeds too, are JSON escapes, so that no name passes for words of ours. */
export const textOfLines = (lines: string | readonly string[]): string =>
  `${[lines].flat().map(escapeControls).join('\n')}\n`

export const linesOf = (text: string): readonly string[] => text.replace(/\n$/, '').split('\n')

export type Signal = 'SIGHUP' | 'SIGINT' | 'SIGTERM'

/** The exit codes. `closedPipe` is the code that a shell reports for a program that SIGPIPE ended: 128 plus 13. */
export const EXIT = { done: 0, failed: 1, misused: 2, storeUnusable: 3, closedPipe: 141 } as const

/** Ends a command that has printed everything, with an exit code other than 0. */
export class Ended extends Error {
  constructor(readonly exitCode: number) {
    super(`ended with ${exitCode}`)
  }
}

/** Whether output failed because its reader has gone, for example `head` after enough lines. */
export const isClosedPipe = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EPIPE'

export const printFailure = (error: Error): string => (isClosedPipe(error) ? 'nobody reads stdout' : error.message)

/** The exit code of a process that a signal ended (POSIX shells: 128 plus its number). */
export const exitCodeOf = (signal: Signal): number => ({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 })[signal]
