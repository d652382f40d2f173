import type { CommandUnknownOpts } from '@commander-js/extra-typings'
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
