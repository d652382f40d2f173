import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { openApiDocument } from '../../http/docs/docs.ts'
import { manual } from '../command.ts'
import type { Io } from '../io.ts'

/** `openapi`: prints the document of `/openapi.json`, without a server or a database. */
export const openapiCommand = (program: Command, io: Io): void => {
  program
    .command('openapi')
    .description('Prints the OpenAPI document.')
    .helpGroup('Information:')
    .addHelpText('after', manual('openapi', 'openapi --public-url https://plants.example.org'))
    .addOption(OPTIONS.publicUrl)
    .action(async ({ publicUrl }) => io.print(`${JSON.stringify(await openApiDocument(publicUrl), null, 2)}\n`))
}
