import { expect, test } from 'bun:test'
import { type DatabaseKind, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { done } from './support/answers.ts'
import { codesOf } from './support/service-client.ts'

const KINDS: readonly DatabaseKind[] = [SQLITE, ...(lacks(POSTGRES_SERVER) ? [] : [POSTGRES])]

test.concurrent.each(KINDS)(
  'token import of a thousand lines makes a running server accept their tokens at once, on $name',
  async ({ make }) => {
    await using made = await make()
    await using server = await serve(made.database)
    const tokens = Array.from({ length: 1000 }, (_, index) => makeTokenLine(`user-${index}`))
    const ends = [tokens[0]?.text ?? '', tokens[999]?.text ?? '']
    const before = await codesOf(server, ends)
    const args = ['token', 'import', '-', '--database', made.database]
    const importAll = () => runPlantstore(args, { stdin: tokens.map(({ line }) => `${line}\n`).join('') })
    const imported = await importAll()

    expect(before).toEqual([40102, 40102])
    expect(await codesOf(server, ends)).toEqual([200, 200])
    expect(imported).toEqual(done('Created 1000 users.\nCreated 1000 tokens, and left 0 tokens as they were.'))
    expect(await importAll()).toEqual(done('Created 0 tokens, and left 1000 tokens as they were.'))
  },
)
