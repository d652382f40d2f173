import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { freePort } from '../support/postgres-system.ts'
import { refusalWith } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'

// test/cli/option-rules.test.ts tries many more mistyped URLs, in one process.
describe.concurrent('a mistyped URL of a database', () => {
  test.each(['serve --database', 'copy --to plants.db --from', 'check --databse'])(
    'is refused and not repeated by plantstore %s',
    async (command) => {
      using folder = makeFolder()
      const args = command.split(' ')
      const mistyped = [
        [...args, 'postgress://wrong:Sesame-99@host/plants'],
        [...args.slice(0, -1), `${args.at(-1)}=mysql://wrong@host/plants?password=Sesame-99`],
        // Without quotes a shell splits it into words.
        [...args, 'host=host', 'user=wrong', 'password=Sesame-99'],
      ]
      const answers = await Promise.all(mistyped.map((words) => runPlantstore(words, { cwd: folder.path })))

      expect(answers).toEqual(answers.map(() => refusalWith(2, '')))
      expect(JSON.stringify(answers)).not.toMatch(/Sesame|wrong/)
      expect(readdirSync(folder.path)).toEqual([])
    },
  )

  test.each(['restore', 'import', 'backup --dir'])(
    'is repeated without its password by plantstore %s',
    async (command) => {
      using made = makeDatabase()
      await made.run('token', 'create', '--user', 'me')
      const { stderr, exitCode } = await made.run(...command.split(' '), 'postgres://me:Sesame-99@host/plants')

      expect(exitCode).not.toBe(0)
      expect(stderr).toContain('me:***@host/plants')
      expect(stderr).not.toContain('Sesame')
    },
  )

  test('that is valid but leads to no server is repeated without its password', async () => {
    const host = `127.0.0.1:${freePort()}`
    const answer = await runPlantstore(['check', '--database', `postgres://me:Sesame-99@${host}/plants`])

    expect(answer).toEqual(refusalWith(3, `The database postgres://me@${host}/plants cannot be reached: `))
    expect(answer.stderr).not.toContain('Sesame')
  })
})
