import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { IMPORT_MAX_BYTES } from '../../src/cli/commands/token-import.ts'
import { type DatabaseKind, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { done, refusalWith } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'
import { codesOf } from './support/service-client.ts'

const KINDS: readonly DatabaseKind[] = [SQLITE, ...(lacks(POSTGRES_SERVER) ? [] : [POSTGRES])]

const told = (created: number, left: number) =>
  `Created ${created} token${created === 1 ? '' : 's'}, and left ${left} token${left === 1 ? '' : 's'} as they were.`

describe.concurrent('token import', () => {
  test.each(KINDS)(
    'of a thousand lines makes a running server accept their tokens at once, on $name',
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
      expect(imported).toEqual(done(`Created 1000 users.\n${told(1000, 0)}`))
      expect(await importAll()).toEqual(done(told(0, 1000)))
    },
  )

  test('takes IMPORT_MAX_BYTES, and refuses one byte more', async () => {
    using made = makeDatabase()
    const text = `${makeTokenLine().line}\n`.padEnd(IMPORT_MAX_BYTES, '\n')
    const feed = (stdin: string) => made.feed(stdin, 'token', 'import', '-')

    expect(await feed(`${text}\n`)).toEqual(refusalWith(2, `The text of stdin has more than ${IMPORT_MAX_BYTES}`))
    expect(existsSync(made.database)).toBe(false)
    expect(await feed(text)).toMatchObject({ stderr: expect.stringContaining(told(1, 0)), exitCode: 0 })
  })
})
