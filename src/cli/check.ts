import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { RESTORE } from '../store/opening.ts'
import { EXIT, type Io } from './io.ts'
import { withStore } from './with-store.ts'

/** `check`: reads the whole database and says what is wrong with it. */
export const checkCommand = (program: Command, io: Io, exit: (code: number) => void): void => {
  program
    .command('check')
    .description('read the whole database and say whether it is whole')
    .addOption(OPTIONS.database())
    .action(async ({ database }: { readonly database: string }) => {
      const problems = await withStore(database, (store) => store.checkIntegrity())
      if (problems.length === 0) return io.tell(`The database ${database} is whole.\n`)
      exit(EXIT.storeUnusable)
      await io.tell(`The database ${database} is damaged:\n${problems.join('\n')}\n${RESTORE}\n`)
    })
}
