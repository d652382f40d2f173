/** The process as the commands see it. Only main.ts knows the real one. */
export interface Io {
  /** What follows the executable's name. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Prints what was asked for. Rejects with what the system says: with `EPIPE` if the reader has gone. */
  print(text: string | Uint8Array): Promise<void>
  /** Tells the person at the terminal what programs do not read. */
  tell(text: string): Promise<void>
  /** Stderr, where it is a terminal. */
  terminal(): NodeJS.WritableStream | undefined
  /** Whether a person reads what is printed. */
  readonly printsToTerminal: boolean
  readStdin(): Promise<string>
  /** The bytes of stdin as they come. */
  stdin(): AsyncIterable<Uint8Array>
  /** Hands over the signals that ask to end, those that have come already included. */
  onSignal(listener: (signal: Signal) => void): void
  /** Bytes that nobody can guess. */
  randomBytes(count: number): Uint8Array
  /** Milliseconds since 1970-01-01 UTC; it follows the clock of the machine. */
  nowMs(): number
  /** Milliseconds of a clock that never jumps. */
  monotonicMs(): number
  /** Ends the process at once. */
  exit(code: number): never
}

/** Whether a terminal takes escape codes, which move its cursor and choose colours. Emacs and others set `TERM=dumb`. */
export const takesEscapeCodes = (env: Io['env']): boolean => env.TERM !== 'dumb'

/** The signals that ask a process to end. */
export type Signal = 'SIGTERM' | 'SIGINT'

/** The exit codes. `closedPipe` is what a shell says of a program that SIGPIPE ended: 128 plus 13. */
export const EXIT = { done: 0, failed: 1, misused: 2, storeUnusable: 3, closedPipe: 141 } as const

/** Whether output failed because its reader has gone, like `head`, which has read enough. */
export const isClosedPipe = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EPIPE'

/** The exit code of a process that a signal ended (POSIX shells: 128 plus its number). */
export const exitCodeOf = (signal: Signal): number => (signal === 'SIGINT' ? 130 : 143)
