import type { Command, CommandUnknownOpts, InferOptions, Option } from '@commander-js/extra-typings'
import { OPTIONS } from '../config.ts'
import type { Store } from '../domain/store.ts'
import type { OpenOptions } from '../store/engine.ts'
import { openStore } from '../store/open.ts'
import { EXIT } from './io.ts'

/** The options that name the store and say how to open it. */
export const DATABASE_OPTIONS = [
  OPTIONS.database,
  OPTIONS.databasePasswordFile,
  OPTIONS.databasePrepare,
  OPTIONS.durability,
] as const

type DatabaseOptions = OptionsOf<typeof DATABASE_OPTIONS>

/** These options as the store takes them. */
export const openOptionsOf = ({ databasePasswordFile, databasePrepare, durability }: DatabaseOptions): OpenOptions => ({
  passwordFile: databasePasswordFile,
  preparesNothing: databasePrepare === 'false',
  durability,
})

/**
 * Opens the store for one task, and closes it after the task. A failure of the store is the task's own failure. A missing store
 * is refused unless `mustExist` is false, because its name is probably a mistake.
 */
export async function withStore<T>(
  options: DatabaseOptions,
  task: (store: Store) => Promise<T>,
  { mustExist = true, ...rest }: Pick<OpenOptions, 'mustExist' | 'onEvent' | 'onCreated'> = {},
): Promise<T> {
  const store = await openStore(options.database, () => {}, { ...openOptionsOf(options), ...rest, mustExist })
  try {
    return await task(store)
  } finally {
    await store.close()
  }
}

/** When a command ends with each exit code that is its own. */
type Exits = Partial<Readonly<Record<keyof typeof EXIT, string>>>

const EXITS: Exits = { done: 'Success.', misused: 'The command line or a variable is wrong.' }
const STORE_EXITS: Exits = { storeUnusable: 'The database is missing, damaged, full or locked, or cannot be reached.' }

type AnyOption = Option<string, unknown, unknown, unknown, boolean, unknown>

/** The values of options, as commander would infer them from a chain of `addOption`. */
type OptionsOf<
  Options extends readonly AnyOption[],
  Values extends object = Record<never, never>,
> = Options extends readonly [
  Option<infer Usage, infer Preset, infer Default, infer Value, infer Mandatory, infer Choices>,
  ...infer Rest extends readonly AnyOption[],
]
  ? OptionsOf<Rest, InferOptions<Values, Usage, Default, Value, Mandatory, Preset, Choices>>
  : Values

/** The texts in the help of a command, and its options. */
interface Definition<Options> {
  readonly does: string
  /** Two calls without the name of the executable. */
  readonly examples: readonly [string, string]
  readonly exits?: Exits
  readonly options?: Options
}

/** Adds a command with its help and its options. The caller adds the arguments and the action. */
export function defineCommand<const Options extends readonly AnyOption[] = []>(
  parent: Command,
  name: string,
  { does, examples, exits, options }: Definition<Options>,
) {
  const command = parent.command(name).description(does)
  for (const option of options ?? []) command.addOption(option)
  command.addHelpText('after', manual(command, examples, exits))
  // Commander infers the values of options only from a chain of calls.
  return command as Command<[], OptionsOf<Options>>
}

/** The last part of the help of a command. */
function manual({ options }: CommandUnknownOpts, examples: readonly string[], exits: Exits = {}): string {
  const usesStore = options.some(({ long }) => long === '--database' || long === '--from')
  const texts: Exits = { ...EXITS, ...(usesStore && STORE_EXITS), ...exits }
  const codes = Object.entries(EXIT).flatMap(([name, code]) => {
    const text = texts[name as keyof typeof EXIT]
    return text === undefined ? [] : `  ${String(code).padEnd(3)}  ${text}`
  })
  const calls = examples.map((call) => `  plantstore ${call}`)
  return ['', 'Examples:', ...calls, '', 'Exit codes:', ...codes].join('\n')
}
