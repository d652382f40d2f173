import type { Command } from '@commander-js/extra-typings'
import { manual } from '../command.ts'
import type { Io } from '../io.ts'
// This import is a path: the file is read only when it is printed.
import thirdPartyLicenses from '../third-party-licenses.txt' with { type: 'file' }

/** `licenses`: prints the third-party software in the executable and its licences. */
export const licensesCommand = (program: Command, io: Io): void => {
  program
    .command('licenses')
    .description('Prints the licences of the third-party software in this executable.')
    .helpGroup('Information:')
    .addHelpText('after', manual('licenses', 'help licenses'))
    .action(async () => io.print(await Bun.file(thirdPartyLicenses).text()))
}
