// Tested in test/cli/transcripts/command-line.txt.
import type { Command, CommandUnknownOpts } from '@commander-js/extra-typings'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { toJson } from '../output.ts'
// This import is a path: the file is read only when it is printed.
import thirdPartyLicenses from '../third-party-licenses.txt' with { type: 'file' }

/** `openapi`: prints the document of `/openapi.json`, without a server or a database. */
export const openapiCommand = (program: Command, io: Io) =>
  defineCommand(program, 'openapi', {
    does: 'Prints the OpenAPI document.',
    examples: ['openapi', 'openapi --public-url https://plants.example.org'],
    options: ['publicUrl'],
  }).action(async ({ publicUrl }) => {
    const { openApiDocument } = await import('../../http/docs/document.ts')
    await io.print(toJson(await openApiDocument(publicUrl)))
  })

/** `licenses`: prints the third-party software in the executable and its licences. */
export const licensesCommand = (program: Command, io: Io) =>
  defineCommand(program, 'licenses', {
    does: 'Prints the licences of the third-party software in this executable.',
    examples: ['licenses', 'help licenses'],
  }).action(async () => io.print(await Bun.file(thirdPartyLicenses).text()))

/** `help COMMAND`. Commander's own `help` does not find commands of two words. */
export const helpCommand = (program: Command) =>
  defineCommand(program, 'help', {
    does: 'Prints what a command does and which options it takes.',
    examples: ['help', 'help token create'],
  })
    .argument('[command...]', 'The words of the command.')
    .action((words: readonly string[]) => {
      // Commander has the words that are alike, but no command may run with an argument of `help`.
      const refuse = (command: CommandUnknownOpts, word: string) =>
        command.commands.length > 0
          ? command.parse([word], { from: 'user' })
          : program.error(`unknown command '${words.join(' ')}'`)
      const find = (command: CommandUnknownOpts, word: string) =>
        command.commands.find((each) => each.name() === word) ?? refuse(command, word)
      words.reduce(find, program).help()
    })
