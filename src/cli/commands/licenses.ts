import type { Command } from '@commander-js/extra-typings'
import type { Io } from '../io.ts'
import { manual } from '../manual.ts'
// A file beside the code, so that nothing of it is read until it is asked for.
import thirdPartyLicenses from '../third-party-licenses.txt' with { type: 'file' }

/** `licenses`: what others wrote of what is inside the executable, and under which licences. */
export const licensesCommand = (program: Command, io: Io): void => {
  program
    .command('licenses')
    .description('Prints the licences of the third-party software in this executable.')
    .helpGroup('Information:')
    .addHelpText('after', manual(['licenses', 'help licenses'], {}))
    .action(async () => io.print(await Bun.file(thirdPartyLicenses).text()))
}
