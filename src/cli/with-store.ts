import type { Command } from '@commander-js/extra-typings'
import { OPTIONS, type OptionsOf } from '../config.ts'
import type { Store } from '../domain/store.ts'
import type { OpenOptions } from '../store/engine.ts'
import { openStore } from '../store/open.ts'

/** Adds the options that name the store and say how to open it. */
export const addDatabaseOptions = (command: Command) =>
  command.addOption(OPTIONS.database).addOption(OPTIONS.databasePasswordFile).addOption(OPTIONS.databasePrepare)

type DatabaseOptions = OptionsOf<ReturnType<typeof addDatabaseOptions>>

/** These options as the store takes them. */
export const openOptionsOf = ({ databasePasswordFile, databasePrepare }: DatabaseOptions): OpenOptions => ({
  passwordFile: databasePasswordFile,
  preparesNothing: databasePrepare === 'false',
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
