import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import type { Store } from '../domain/store.ts'
import { openStore } from '../store/open.ts'
import type { OpenOptions } from '../store/opening.ts'

/** The options that say which store, and how to get to it. */
export interface DatabaseOptions {
  readonly database: string
  readonly databasePasswordFile?: string
  readonly databasePrepare: 'true' | 'false'
}

/** Gives a command these options. */
export const addDatabaseOptions = (command: Command): Command =>
  command.addOption(OPTIONS.database()).addOption(OPTIONS.databasePasswordFile()).addOption(OPTIONS.databasePrepare())

/** What they mean to whoever opens the store. */
export const openOptionsOf = ({ databasePasswordFile, databasePrepare }: DatabaseOptions): OpenOptions => ({
  passwordFile: databasePasswordFile,
  preparesNothing: databasePrepare === 'false',
})

/**
 * Opens the store for one task and closes it after. A failure of the store is the task's own failure. A store that
 * is not there is most likely a mistake in its name, and not made unless the options say so.
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
