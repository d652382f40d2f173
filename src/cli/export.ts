import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { openTransfer } from '../store/open.ts'
import { watchSnapshot } from './copying.ts'
import type { Io } from './io.ts'
import { renderPlantLines } from './plant-line.ts'
import { showProgress } from './progress.ts'

interface ExportOptions {
  readonly database: string
  readonly user?: string
}

/** `export`: plants as they are at one moment, a line of JSON each, as fast as they are taken. */
export const exportCommand = (program: Command, io: Io): void => {
  program
    .command('export')
    .description('print all plants, or those of a user, a line of JSON each; also while a server runs')
    .addOption(OPTIONS.user())
    .addOption(OPTIONS.database())
    .action(async ({ database, user }: ExportOptions) => {
      const transfer = await openTransfer(database, io.nowMs)
      try {
        const { plants, batches } = await transfer.exportPlants(user)
        const tellLong = watchSnapshot(io)
        using progress = showProgress(io.printsToTerminal ? undefined : io, 'plants exported')
        let done = 0
        for await (const batch of batches) {
          await io.print(renderPlantLines(batch))
          done += batch.length
          progress.update(done, plants)
          tellLong()
        }
      } finally {
        await transfer.close()
      }
    })
}
