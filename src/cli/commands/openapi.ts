import type { Command } from 'commander'
import { OPTIONS } from '../../config.ts'
import { openApiDocument } from '../../http/docs/openapi.ts'
import type { Io } from '../io.ts'

/** `openapi`: the document that `/openapi.json` serves, without a server or a database. */
export const openapiCommand = (program: Command, io: Io): void => {
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .addOption(OPTIONS.publicUrl())
    .action(({ publicUrl }: { readonly publicUrl?: string }) =>
      io.print(`${JSON.stringify(openApiDocument(publicUrl), null, 2)}\n`),
    )
}
