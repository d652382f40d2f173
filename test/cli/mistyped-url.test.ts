import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { freePort } from '../support/postgres-system.ts'

/** Runs a command in an empty folder. */
async function run(args: readonly string[]) {
  using folder = makeFolder()
  const { stdout, stderr, exitCode } = await runPlantstore(args, { cwd: folder.path })
  const isOneLine = /^plantstore: [^\n]+\n$/.test(stderr)
  return { stdout, isOneLine, exitCode, isRepeated: /Sesame|wrong/.test(stderr), files: readdirSync(folder.path) }
}
const REFUSED = { stdout: '', isOneLine: true, exitCode: 2, isRepeated: false, files: [] }

// test/cli/option-rules.test.ts tries many more mistyped URLs, in one process.
describe.concurrent('a mistyped URL of a database', () => {
  test.each([
    ['serve --database'],
    ['token create --user me --database'],
    ['token list --json --database'],
    ['status --json --database'],
    ['copy --to plants.db --from'],
    ['copy --from plants.db --to'],
    ['check --databse'],
  ])('is refused and not repeated by plantstore %s', async (command) => {
    const args = command.split(' ')
    const answers = await Promise.all([
      run([...args, 'postgress://wrong:Sesame-99@host/plants']),
      run([...args.slice(0, -1), `${args.at(-1)}=mysql://wrong@host/plants?password=Sesame-99`]),
      // Without quotes a shell splits it into words.
      run([...args, 'host=host', 'user=wrong', 'password=Sesame-99']),
    ])

    expect(answers).toEqual([REFUSED, REFUSED, REFUSED])
  })

  test.each(['restore', 'import', 'backup --dir'])(
    'is repeated without its password by plantstore %s',
    async (command) => {
      using folder = makeFolder()
      const inFolder = { cwd: folder.path }
      await runPlantstore(['token', 'create', '--user', 'me'], inFolder)
      const args = [...command.split(' '), 'postgres://me:Sesame-99@host/plants']
      const { stderr, exitCode } = await runPlantstore(args, inFolder)

      expect(exitCode).not.toBe(0)
      expect(stderr).toContain('me:***@host/plants')
      expect(stderr).not.toContain('Sesame')
    },
  )

  test('that is valid but leads to no server is repeated without its password', async () => {
    const host = `127.0.0.1:${freePort()}`
    const { stderr, exitCode } = await runPlantstore(['check', '--database', `postgres://me:Sesame-99@${host}/plants`])

    expect(exitCode).toBe(3)
    expect(stderr).toStartWith(`plantstore: The database postgres://me@${host}/plants cannot be reached: `)
    expect(stderr).not.toContain('Sesame')
  })
})
