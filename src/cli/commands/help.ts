import type { Command, CommandUnknownOpts } from '@commander-js/extra-typings'
import { manual } from '../command.ts'

/** `help COMMAND`. Commander's own `help` does not find commands of two words. */
export const helpCommand = (program: Command): void => {
  program
    .command('help')
    .description('Prints what a command does and which options it takes.')
    .helpGroup('Information:')
    .addHelpText('after', manual('help', 'help token create'))
    .argument('[command...]', 'The words of the command.')
    .action((names: readonly string[]) => find(program, names).help())
}

function find(program: CommandUnknownOpts, names: readonly string[]): CommandUnknownOpts {
  let command = program
  for (const name of names) {
    const next = command.commands.find((each) => each.name() === name)
    if (next === undefined) program.error(`unknown command '${names.join(' ')}'`)
    command = next
  }
  return command
}
