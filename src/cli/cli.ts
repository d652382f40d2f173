import { Command, CommanderError } from 'commander'
import { applyBooleanVariables, unknownVariables } from '../config.ts'
import { hidePasswords } from '../domain/database-url.ts'
import { AppError, type ErrorKind } from '../domain/error.ts'
import { VERSION } from '../version.ts'
import { backupCommand } from './backup.ts'
import { checkCommand } from './check.ts'
import { copyCommand } from './copy.ts'
import { exportCommand } from './export.ts'
import { healthcheckCommand } from './healthcheck.ts'
import { helpCommand } from './help.ts'
import { importCommand } from './import.ts'
import { EXIT, exitCodeOf, type Io } from './io.ts'
import { licensesCommand } from './licenses.ts'
import { openapiCommand } from './openapi.ts'
import { restoreCommand } from './restore.ts'
import { serveCommand } from './serve.ts'
import { statusCommand } from './status.ts'
import { tokenCreateCommand } from './token-create.ts'
import { tokenListCommand } from './token-list.ts'
import { tokenRevokeCommand } from './token-revoke.ts'
import { userDeleteCommand } from './user-delete.ts'
import { userListCommand } from './user-list.ts'

/** Runs the command that the arguments name. Resolves to the exit code; whatever fails is told in one line. */
export async function run(io: Io): Promise<number> {
  let exitCode: number = EXIT.done
  const program = createProgram(io, (code) => {
    exitCode = code
  })
  io.onSignal((signal) => io.exit(exitCodeOf(signal)))
  try {
    await program.parseAsync(io.argv, { from: 'user' })
    return exitCode
  } catch (error) {
    return fail(io, error)
  }
}

/** All commands with their options. `exit` takes the exit code of one that ends without an error. */
export function createProgram(io: Io, exit: (code: number) => void): Command {
  const program = new Command('plantstore')
    .description('Stores plants, and serves them over HTTP to whoever has a token.')
    .version(VERSION)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.print(text).catch(() => undefined),
      writeErr: (text) => void io.tell(text),
      outputError: (text, write) => write(line(text.replace(/^error: /, ''))),
    })
    .hook('preAction', async (_, command) => {
      applyBooleanVariables(command, io.env)
      for (const name of unknownVariables(io.env)) await io.tell(line(`There is no variable ${name}: it is ignored.`))
    })
  serveCommand(program, io, exit)
  const token = program.command('token').description('tokens, with which clients get in')
  tokenCreateCommand(token, io)
  tokenListCommand(token, io)
  tokenRevokeCommand(token, io)
  const user = program.command('user').description('users, to whom tokens and plants belong')
  userListCommand(user, io)
  userDeleteCommand(user, io)
  statusCommand(program, io)
  checkCommand(program, io, exit)
  backupCommand(program, io, exit)
  restoreCommand(program, io, exit)
  copyCommand(program, io, exit)
  exportCommand(program, io)
  importCommand(program, io, exit)
  healthcheckCommand(program, io)
  openapiCommand(program, io)
  licensesCommand(program, io)
  helpCommand(program)
  return program
}

async function fail(io: Io, error: unknown): Promise<number> {
  // Help and version are no failure; commander has told the person already whatever it throws.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.misused
  if (!(error instanceof AppError)) {
    // What the system refuses is told in a line, like a full or closed stdout. Anything else is a bug.
    const isOfSystem = error instanceof Error && 'syscall' in error
    await io.tell(isOfSystem ? line(`${error.message}.`) : `plantstore: ${Bun.inspect(error)}\n`)
    return EXIT.failed
  }
  await io.tell(line(error.message || (STORE_MESSAGES[error.kind] ?? error.kind)))
  if (error.kind === 'misused') return EXIT.misused
  return error.kind.startsWith('store_') ? EXIT.storeUnusable : EXIT.failed
}

/** One line for the person at the terminal, whatever the text holds of what was given to us. */
const line = (text: string): string =>
  `plantstore: ${hidePasswords(text)
    .trim()
    .replace(/\p{Cc}+/gu, ' ')}\n`

/** What the store says by its kind alone. */
const STORE_MESSAGES: Partial<Record<ErrorKind, string>> = {
  store_full: 'The database is out of space or read-only, nothing was changed: make room.',
  // Nothing of a file that only its disk has failed may be thrown away: check tells that from damage.
  store_failed:
    'The database failed, is damaged or cannot be reached: see that its disk works, keep all its files, and run plantstore check.',
  store_busy: 'The database is locked by another process or busy, nothing was changed: try again.',
}
