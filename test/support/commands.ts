import type { Argument, CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { createProgram } from '../../src/cli/cli.ts'
import { makeIo } from './io.ts'

/** The commands that do something, like `token create`, but not `token`. */
export const leafCommands = async (io = makeIo().io): Promise<readonly CommandUnknownOpts[]> =>
  leavesOf(await createProgram(io))

const leavesOf = (command: CommandUnknownOpts): CommandUnknownOpts[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)

/** The words that name a command, without the name of the executable. */
export function nameOf(command: CommandUnknownOpts): readonly string[] {
  return command.parent === null ? [] : [...nameOf(command.parent), command.name()]
}

/** The commands that take an option, like `token create, list; check`. */
export function takersOf(option: unknown, commands: readonly CommandUnknownOpts[]): string {
  const names = commands.filter(({ options }) => options.some((each) => each === option)).map(nameOf)
  const groups = [...Map.groupBy(names, ([first = '']) => first)]
  return groups
    .map(([first, members]) => `${first} ${members.map(([, ...rest]) => rest.join(' ')).join(', ')}`.trim())
    .join('; ')
}

/** What an option or an argument means, with its choices if the description does not name them. */
export function withChoices({
  description,
  argChoices = [],
}: Pick<Option | Argument, 'description' | 'argChoices'>): string {
  const isNamed = argChoices.every((choice) => description.toLowerCase().includes(choice))
  return isNamed ? description : `${description} One of: ${argChoices.join(', ')}.`
}
