import type { AddHelpTextContext, Command } from '@commander-js/extra-typings'
import { OPTIONS, type OptionsOf } from '../config.ts'
import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { OpenOptions } from '../store/engine.ts'
import { openStore } from '../store/open.ts'
import { EXIT } from './io.ts'

/** Adds the options that name the store and say how to open it. */
export const addDatabaseOptions = (command: Command) =>
  command
    .addOption(OPTIONS.database)
    .addOption(OPTIONS.databasePasswordFile)
    .addOption(OPTIONS.databasePrepare)
    .addOption(OPTIONS.durability)

type DatabaseOptions = OptionsOf<ReturnType<typeof addDatabaseOptions>>

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

/** The error of a wrong command line, with exit code 2. */
export const misused = (message: string): AppError => new AppError('misused', { message })

/** When a command ends with each exit code that is its own. */
type Exits = Partial<Readonly<Record<keyof typeof EXIT, string>>>

const EXITS: Exits = { done: 'Success.', misused: 'The command line or a variable is wrong.' }
const STORE_EXITS: Exits = { storeUnusable: 'The database is missing, damaged, full or locked, or cannot be reached.' }

/** The last part of the help of a command: two examples, without the name of the executable, and the exit codes. */
export const manual =
  (first: string, second: string, exits: Exits = {}) =>
  ({ command }: Pick<AddHelpTextContext, 'command'>): string => {
    const usesStore = command.options.some(({ long }) => long === '--database' || long === '--from')
    const texts: Exits = { ...EXITS, ...(usesStore && STORE_EXITS), ...exits }
    const codes = Object.entries(EXIT).flatMap(([name, code]) => {
      const text = texts[name as keyof typeof EXIT]
      return text === undefined ? [] : `  ${String(code).padEnd(3)}  ${text}`
    })
    return ['', 'Examples:', `  plantstore ${first}`, `  plantstore ${second}`, '', 'Exit codes:', ...codes].join('\n')
  }
