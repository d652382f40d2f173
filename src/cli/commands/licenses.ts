import type { Command } from 'commander'
import type { Io } from '../io.ts'
// A file beside the code, so that nothing of it is read until it is asked for.
import thirdPartyLicenses from '../third-party-licenses.txt' with { type: 'file' }

/** `licenses`: what others wrote of what is inside the executable, and under which licences. */
export const licensesCommand = (program: Command, io: Io): void => {
  program
    .command('licenses')
    .description('print the licences of what others wrote of this executable')
    .action(async () => io.print(await Bun.file(thirdPartyLicenses).text()))
}
