// Tested in test/cli/transcripts/command-line.txt.
import type { Command, CommandUnknownOpts } from '@commander-js/extra-typings'
import { DATABASE_SETTINGS, OPTIONS, type ValuesOf } from '../config.ts'
import { OTHERS_SEEN_WITHIN_MS, type Store } from '../domain/store.ts'
import { AppError } from '../error.ts'
import type { OpenOptions } from '../store/database.ts'
import { databaseOf, openStore } from '../store/open.ts'
import { EXIT, type Io } from './io.ts'
import { placeOf, SETTINGS_FILE } from './service-settings.ts'

export const namesOf = <Options extends object>(options: Options) =>
  // `keys` forgets the names.
  Object.keys(options) as (keyof Options)[]

const { database: _, ...HOW_TO_OPEN } = DATABASE_SETTINGS
/** The options of a command that opens the store, besides the one that names it. */
export const STORE_OPTIONS = namesOf(HOW_TO_OPEN)

type DatabaseOptions = ValuesOf<keyof typeof DATABASE_SETTINGS>

export const openOptionsOf = ({ databasePasswordFile, databasePrepare, durability }: DatabaseOptions) => ({
  passwordFile: databasePasswordFile,
  preparesNothing: !databasePrepare,
  durability,
})

/**
 * Opens the store for one task, and closes it after the task. A failure of the store is the task's own failure. A missing store
 * is refused unless `mustExist` is false, because its name is probably a mistake.
 */
export async function withStore<T>(
  options: DatabaseOptions,
  task: (store: Store) => Promise<T>,
  { mustExist = true, ...rest }: Pick<OpenOptions, 'mustExist' | 'onCreated' | 'onRaised' | 'onOtherName'> = {},
): Promise<T> {
  const store = await openStore(options.database, () => {}, { ...openOptionsOf(options), ...rest, mustExist })
  const [done] = await Promise.allSettled([task(store)])
  await store.close().catch((cause) => {
    const message = 'This was done, but then the database failed: see that its disk works, and run plantstore check.'
    // If the task has failed as well, its error says more.
    if (done.status === 'fulfilled') throw new AppError('store_failed', { message, cause })
  })
  if (done.status === 'rejected') throw done.reason
  return done.value
}

/** What has chosen a value of commander's own sources. The other sources are named as they are. */
const CHOSEN_BY: Readonly<Record<string, string>> = {
  cli: '--database',
  env: `${OPTIONS.database.envVar}`,
  default: 'the default of --database',
}

/** Says which database a command is about to change, and what has chosen it. */
export async function reportDatabase(command: CommandUnknownOpts, { report }: Pick<Io, 'report'>): Promise<void> {
  const source = String(command.getOptionValueSource('database'))
  const { location } = databaseOf(String(command.getOptionValue('database')))
  await report(`The database is ${location}, chosen by ${CHOSEN_BY[source] ?? source}.`)
}

export const warnOn =
  ({ report }: Pick<Io, 'report'>) =>
  (problem: string) =>
    void report(`Warning: ${problem}`)

export const tellRaise = (log: { warn(text: string): void }) => (from: number, to: number) =>
  log.warn(`The schema of the database was raised from version ${from} to ${to}: older executables refuse it.`)

/** As `withStore`, but makes a missing store: an operator may create tokens before the first start. */
export const withNewStore = <T>(options: DatabaseOptions, io: Pick<Io, 'report'>, task: (store: Store) => Promise<T>) =>
  withStore(options, task, {
    mustExist: false,
    onRaised: tellRaise({ warn: warnOn(io) }),
    onCreated: (database) => void io.report(`Created a new, empty store: ${database}.`),
  })

/** As `withStore`, for a task that changes access. Once this resolves, every server on the same file follows the change. */
export async function changeAccess<T>(options: DatabaseOptions, io: Io, task: (store: Store) => Promise<T>) {
  const result = await withStore(options, task, { onRaised: tellRaise({ warn: warnOn(io) }) })
  await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
  return result
}

/** When a command ends with each exit code that is its own. */
type Exits = Partial<Readonly<Record<keyof typeof EXIT, string>>>

export const EXITS: Exits = { done: 'Success.', misused: 'The command line or a variable is wrong.' }
export const STORE_EXITS: Exits = {
  storeUnusable: 'The database is missing, damaged, full or locked, or cannot be reached.',
}

/** The texts in the help of a command, and the names of its options in `OPTIONS`. */
interface Definition<Name> {
  readonly does: string
  /** Two calls without the name of the executable. */
  readonly examples: readonly [string, string]
  readonly exits?: Exits
  readonly options?: readonly Name[]
}

/** Adds a command with its help and its options. The caller adds the arguments and the action. */
export function defineCommand<Name extends keyof typeof OPTIONS = never>(
  parent: Command,
  name: string,
  { does, examples, exits, options = [] }: Definition<Name>,
) {
  const command = parent.command(name).description(does)
  for (const option of options) command.addOption(OPTIONS[option])
  command.addHelpText('after', manual(command, examples, exits))
  // Commander infers the values of options only from a chain of calls.
  return command as Command<[], ValuesOf<Name>>
}

/** The last part of the help of a command. */
function manual(command: CommandUnknownOpts, examples: readonly string[], exits: Exits = {}): string {
  const usesStore = command.options.some(({ long }) => long === '--database' || long === '--from')
  const texts: Exits = { ...EXITS, ...(usesStore && STORE_EXITS), ...exits }
  const codes = Object.entries(EXIT).flatMap(([name, code]) => {
    const text = texts[name as keyof typeof EXIT]
    return text === undefined ? [] : `  ${String(code).padEnd(3)}  ${text}`
  })
  const calls = examples.map((call) => `  plantstore ${call}`)
  const place = placeOf(command)?.long
  const when = command.name() === 'serve' ? 'which its unit gives to serve' : place && `unless ${place} is given`
  const files = when === undefined ? [] : ['', 'Files:', `  ${SETTINGS_FILE}  The settings of a package, ${when}.`]
  return ['', 'Examples:', ...calls, '', 'Exit codes:', ...codes, ...files].join('\n')
}
