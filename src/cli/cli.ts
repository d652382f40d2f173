// Tested in test/cli/transcripts/command-line.txt.
import { Command, CommanderError } from '@commander-js/extra-typings'
import { OPTIONS } from '../config.ts'
import { hidePasswords } from '../database-url.ts'
import { AppError, type ErrorKind, type Remedy } from '../error.ts'
import { RESTORE } from '../store/database.ts'
import { decoded, parse, withName } from '../values.ts'
import { HOMEPAGE, VERSION } from '../version.ts'
import { Ended, EXIT, type Io, isClosedPipe, linesOf } from './io.ts'
import { applyServiceSettings } from './service-settings.ts'
import { applyBooleanVariables, unknownVariables } from './variables.ts'

/** Runs the command that the arguments name. Resolves to the exit code. A failure is printed in one line. */
export async function run(io: Io): Promise<number> {
  const help: string[] = []
  try {
    const program = await createProgram(io, io.argv[0], help)
    // Without help nothing is printed: it would wait behind the output of a command that a signal has stopped.
    const done = program.parseAsync(io.argv, { from: 'user' }).finally(() => help.length > 0 && io.print(help.join('')))
    await Promise.race([done, io.uncaught])
    return EXIT.done
  } catch (error) {
    return fail(io, error)
  }
}

/** Adds the commands of a first word. Only the code of that command is loaded, so that it starts fast. */
type AddCommand = (program: Command, io: Io) => Promise<unknown>

/** The commands by their first words, under the headings of the help. */
const COMMANDS: Readonly<Record<string, Readonly<Record<string, AddCommand>>>> = {
  'Server:': {
    serve: async (program, io) => (await import('./serve/serve.ts')).serveCommand(program, io),
    healthcheck: async (program, io) => (await import('./commands/healthcheck.ts')).healthcheckCommand(program, io),
  },
  'Access:': {
    token: async (program, io) => (await import('./commands/token.ts')).tokenCommands(program, io),
    user: async (program, io) => (await import('./commands/user.ts')).userCommands(program, io),
  },
  'Data:': {
    status: async (program, io) => (await import('./commands/status.ts')).statusCommand(program, io),
    check: async (program, io) => (await import('./commands/check.ts')).checkCommand(program, io),
    backup: async (program, io) => (await import('./commands/backup.ts')).backupCommand(program, io),
    restore: async (program, io) => (await import('./commands/backup.ts')).restoreCommand(program, io),
    copy: async (program, io) => (await import('./commands/copy.ts')).copyCommand(program, io),
    export: async (program, io) => (await import('./commands/export.ts')).exportCommand(program, io),
    import: async (program, io) => (await import('./commands/import.ts')).importCommand(program, io),
  },
  'Information:': {
    openapi: async (program, io) => (await import('./commands/information.ts')).openapiCommand(program, io),
    licenses: async (program, io) => (await import('./commands/information.ts')).licensesCommand(program, io),
    completion: async (program, io) => (await import('./commands/completion.ts')).completionCommand(program, io),
    help: async (program) => (await import('./commands/information.ts')).helpCommand(program),
  },
}

const AFTER_HELP = `
plantstore help COMMAND prints the options, examples and exit codes of a command.
Every command exits with 130 or 143 if SIGINT or SIGTERM stops it, but serve exits
with 0 if it ends in good order. A command exits with 141 if the reader of stdout
has gone.

The documentation is at ${HOMEPAGE}.
Packages have it in /usr/share/doc/plantstore.`

/**
 * The command line with the commands of a first word, or with all commands for `help`, `completion` and unknown words. It adds
 * help and version to `help`, because commander does not wait until they are printed.
 */
export async function createProgram(io: Io, word = 'help', help: string[] = []): Promise<Command> {
  const program = new Command('plantstore')
    .description('Stores plants, and serves them over HTTP to clients with a token.')
    .version(VERSION, '-V, --version', 'Prints the version.')
    .helpOption('-h, --help', 'Prints this help.')
    .helpCommand(false)
    .addHelpText('after', AFTER_HELP)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void help.push(text),
      writeErr: (text) => void io.report(linesOf(text)),
      outputError: (text) => void io.report(line(reworded(text, word))),
    })
    .hook('preAction', async (_, command) => {
      for (const text of command.args) withName('The argument', () => parse(decoded(text), String))
      applyBooleanVariables(command, io.env)
      const settings = applyServiceSettings(command, io)
      for (const name of unknownVariables({ ...settings, ...io.env }))
        await io.report(line(`There is no variable ${name}: it is ignored.`))
    })
  const groups = Object.entries(COMMANDS)
  const isOne = !/^(?:help|completion)$/.test(word) && groups.some(([, commands]) => Object.hasOwn(commands, word))
  for (const [heading, commands] of groups) {
    program.commandsGroup(heading)
    for (const [name, add] of Object.entries(commands)) if (!isOne || name === word) await add(program, io)
  }
  return program
}

async function fail(io: Io, error: unknown): Promise<number> {
  // Help and version are no failure. Commander has printed its errors before.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.misused
  if (error instanceof Ended) return error.exitCode
  if (!(error instanceof AppError)) {
    if (isClosedPipe(error)) return EXIT.closedPipe
    // An error of the system, like a full stdout, gets one line. Any other error is a bug and gets its stack.
    const isOfSystem = error instanceof Error && 'syscall' in error
    await io.report(isOfSystem ? line(`${error.message}.`) : linesOf(`plantstore: ${Bun.inspect(error)}`))
    return EXIT.failed
  }
  const [, shownBy] = SHOWN_BY.find(([words]) => words.test(io.argv.join(' '))) ?? ['', 'status']
  const outcome = error.outcomeIsUnknown ? `Whether it was done is unknown: see plantstore ${shownBy}. ` : ''
  const message = error.message || (STORE_MESSAGES[error.kind] ?? error.kind)
  await io.report(line(outcome + message + (error.remedy ? REMEDIES[error.remedy] : '')))
  if (error.kind === 'misused') return EXIT.misused
  return error.kind.startsWith('store_') ? EXIT.storeUnusable : EXIT.failed
}

/** A message of commander with what helps, and without values: they may be of a URL with a password. */
function reworded(message: string, word: string): string {
  const [said = '', predicate] = message.split('\0')
  if (predicate !== undefined)
    return `${/from env '(\w+)' is \w+\. $/.exec(said)?.[1] ?? /--[\w-]+/.exec(said)} ${predicate}`
  const flag = /^error: unknown option '(--[\w-]+)=/.exec(message)?.[1]
  if (Object.values(OPTIONS).some((each) => each.long === flag && !each.required && !each.optional))
    return `option '${flag}' takes no value: say ${flag} alone.`
  const text = message
    .replace(/( but got \d+): .*/s, '$1')
    .replace(/=.*'/s, "'")
    .replace(/^error: /, '')
    .replace('\n(Did you', ' (Did you')
    .trim()
  const [, meant] = MEANT.find(([pattern]) => pattern.test(`${word}: ${text}`)) ?? []
  return `${meant ? text.replace(/ \(Did.*|$/, ` (Did you mean ${meant}?)`) : text}. Try --help.`
}

/** What others call our commands and options: the first word of the command line, and the message of commander. */
const MEANT = [
  [/^(?:serve|healthcheck): unknown option '(?:--port|--host|--url|-p)'/, '--listen'],
  [/unknown option '--db'/, '--database'],
  [/^(?:start|run): /, 'serve'],
  [/^token: unknown command '(?:new|add)'/, 'token create'],
  [/^user: unknown command '(?:new|add|create)'/, 'token create, which creates a missing user'],
  [/unknown (?:option '-v'|command 'version')/, '--version'],
] as const

/** One line on stderr. Passwords in the text are hidden. */
const line = (text: string): string => `plantstore: ${hidePasswords(text).trim()}`

/** How messages end whose remedy is a command. */
const REMEDIES: Readonly<Record<Remedy, string>> = {
  restore: `. ${RESTORE}`,
  check: ': run plantstore check, which lets it start again if nothing is damaged: see docs/how-to/troubleshoot.md.',
  undo: '. Undo that, or move the database with the -wal and -shm files beside it away and run plantstore restore: see docs/how-to/backup-restore.md.',
  'back up': ' by plantstore backup.',
  dump: ': see docs/how-to/troubleshoot.md to dump it.',
}

/** The command that shows whether another one was done, by the first words of that one. */
const SHOWN_BY = [
  [/^(?:serve|token create|token rotate)\b/, 'token list, because a token may be active that was not printed'],
  [/^token\b/, 'token list'],
  [/^user\b/, 'user list'],
  [/^import\b/, 'export'],
] as const

/** The messages of errors of the store that have none of their own. */
const STORE_MESSAGES: Partial<Record<ErrorKind, string>> = {
  // Only `import` rejects with this.
  plant_exists: 'Others have created some of these plants meanwhile.',
  store_full: 'The database is out of space or read-only and took no change: make room.',
  // If only the disk has failed, the files are good. `check` tells that from damage.
  store_failed:
    'The database failed, is damaged or cannot be reached: see that its disk works, keep all its files, and run plantstore check. See docs/how-to/troubleshoot.md.',
  store_busy: 'The database is locked by another process or busy and took no change: try again.',
}
