import { describe, expect, test } from 'bun:test'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { refusal, refusalWith } from './support/answers.ts'
import { serveDatabase } from './support/database.ts'

const MISUSES: readonly string[][] = [
  [],
  ['token'],
  ['serf'],
  ['user', 'rename'],
  ['help', 'nothing'],
  ['serve', '-x'],
  // The name of --metrics-listen before version 1.
  ['serve', '--ops-listen', '127.0.0.1:0'],
  ['serve', '--database'],
  ['check', 'plantstore.db'],
  ['token', 'rotate', '1', '2'],
  ['token', 'revoke'],
  ['token', 'revoke', '0'],
  ['token', 'revoke', '1', '--user', 'me'],
  ['user', 'block', 'm e'],
  ['user', 'delete', '--yes'],
  ['user', 'delete', 'm e', '--yes'],
]

describe.concurrent('the command line', () => {
  test('prints only the version on stdout', async () => {
    const answer = await runPlantstore(['--version'])

    expect(answer).toEqual({ stdout: `${packageJson.version}\n`, stderr: '', exitCode: 0 })
  })

  test('prints the help, in groups, on stdout', async () => {
    const [flag, command] = await Promise.all([runPlantstore(['--help']), runPlantstore(['help'])])
    const groups = flag.stdout.split(/^(?=[A-Z]\w+:$)/m).slice(1)
    const commandsByGroup = groups.map((group) =>
      group.match(/^[A-Z]\w+(?=:$)|^ {2}[a-z]+/gm)?.map((word) => word.trim()),
    )

    expect(flag).toMatchObject({ stderr: '', exitCode: 0 })
    expect(commandsByGroup).toEqual([
      ['Options'],
      ['Server', 'serve', 'healthcheck'],
      ['Access', 'token', 'user'],
      ['Data', 'status', 'check', 'backup', 'restore', 'copy', 'export', 'import'],
      ['Information', 'openapi', 'licenses', 'completion', 'help'],
    ])
    expect(command).toEqual(flag)
  })

  test('prints the same help of a command, however it is asked for', async () => {
    const [flag, command, inner] = await Promise.all([
      runPlantstore(['token', 'create', '--help']),
      runPlantstore(['help', 'token', 'create']),
      runPlantstore(['token', 'help', 'create']),
    ])

    expect(flag).toMatchObject({ stderr: '', exitCode: 0 })
    expect(flag.stdout).toStartWith('Usage: plantstore token create ')
    expect(flag.stdout).toContain('PLANTSTORE_DATABASE')
    expect([command, inner]).toEqual([flag, flag])
  })

  test('says in one line what was wrong, with control characters as JSON escapes', async () => {
    const [forged, excess, url] = await Promise.all([
      runPlantstore(['a\n\u001b[2K\u009b\u202eb']),
      runPlantstore(['check', 'postgres://me:secret@host/plants']),
      runPlantstore(['serve', '--listen', 'http://127.0.0.1:3000']),
    ])

    expect(forged.stderr).toBe(
      `${String.raw`plantstore: unknown command 'a\u000a\u001b[2K\u009b\u202eb'. Try --help or --version.`}\n`,
    )
    expect(excess.stderr).toBe("plantstore: too many arguments for 'check'. Expected 0 arguments but got 1.\n")
    expect(url.stderr).toBe('plantstore: --listen (PLANTSTORE_LISTEN) must be HOST:PORT: leave http:// out.\n')
  })

  test.each([
    ['-v', "unknown option '-v'"],
    ['version', "unknown command 'version'"],
    ['help version', "unknown command 'version'"],
    ['serf', "unknown command 'serf' (Did you mean one of serve, user?)"],
    ['token creat --user me', "unknown command 'creat' (Did you mean create?)"],
    ['status --databas x', "unknown option '--databas' (Did you mean --database?)"],
    ['status --databas=postgres://me:secret@host/plants', "unknown option '--databas'"],
    ['serve --port 3000', "unknown option '--port' (Did you mean --listen?)"],
    ['serve -p 3000', "unknown option '-p' (Did you mean --listen?)"],
    ['status --port 3000', "unknown option '--port'"],
  ])('points to --help and --version for a word that it does not know: %s', async (args, message) => {
    expect(await runPlantstore(args.split(' '))).toEqual({
      ...{ stdout: '', exitCode: 2 },
      stderr: `plantstore: ${message}. Try --help or --version.\n`,
    })
  })

  test('prints help and version also with such a word', async () => {
    const [help, version] = await Promise.all([runPlantstore(['serf', '--help']), runPlantstore(['serf', '--version'])])

    expect(help).toEqual(await runPlantstore(['--help']))
    expect(version).toEqual(await runPlantstore(['--version']))
  })

  test('speaks of no other command in the help of one', async () => {
    const commands = ['token create', 'token rotate', 'token list', 'token revoke', 'export', 'import']
    const helps = await Promise.all(commands.map((command) => runPlantstore([...command.split(' '), '--help'])))
    const optionOf = (flag: string) =>
      helps.map(({ stdout }) => new RegExp(`^  ${flag} <\\w+>  +(.*\\n(?: {6,}.*\\n)*)`, 'm').exec(stdout)?.[1])
    const texts = [...optionOf('--user'), ...optionOf('--expires')].map((text) => text?.replace(/\s+/g, ' ').trim())

    expect(texts).toEqual([
      'The user of the new token. The command creates a missing user.',
      ...[undefined, 'Only the tokens of this user.', 'Only the tokens of this user.', 'Only the plants of this user.'],
      'The user of the lines that name none.',
      'The token expires after this time, like 90d. By default never.',
      'The new token expires after this time, like 90d. By default after the lifetime of the old token.',
      ...Array(4).fill(undefined),
    ])
  })

  test('says on stderr what was wrong, exits with 2 and leaves no file', async () => {
    using folder = makeFolder()
    const answers = await Promise.all(MISUSES.map((args) => runPlantstore(args, { cwd: folder.path })))

    const outcomes = answers.map(({ stdout, stderr, exitCode }, index) => ({
      args: MISUSES[index],
      stdout,
      exitCode,
      isTold: stderr !== '' && !stderr.includes('    at '),
    }))
    expect(outcomes).toEqual(MISUSES.map((args) => ({ args, stdout: '', exitCode: 2, isTold: true })))
    expect(readdirSync(folder.path)).toEqual([])
  })
})

describe.concurrent('commands that need no database', () => {
  test('print the licences of all third-party software, and the document that a server serves', async () => {
    await using service = await serveDatabase()
    using folder = makeFolder()
    const licenses = await runPlantstore(['licenses'], { cwd: folder.path })
    const openapi = await runPlantstore(['openapi'], { cwd: folder.path })
    const served = await service.server.request('GET', '/openapi.json')

    const text = await Bun.file(join(import.meta.dir, '../../src/cli/third-party-licenses.txt')).text()
    expect(licenses).toEqual({ stdout: text, stderr: '', exitCode: 0 })
    expect(openapi).toMatchObject({ stderr: '', exitCode: 0 })
    expect(JSON.parse(openapi.stdout)).toEqual(await served.json())
    expect(readdirSync(folder.path)).toEqual([])
  })
})

describe.concurrent('commands that need a database', () => {
  const COMMANDS = [
    'token list',
    'token rotate 1',
    'token revoke 1',
    'user list',
    'user block me',
    'user delete me --yes',
  ]
    .concat(['check', 'export', 'import /dev/null', 'status'])
    .map((command) => command.split(' '))
  const runAll = (path: string) =>
    Promise.all(COMMANDS.map((command) => runPlantstore([...command, '--database', path])))

  test('refuse a missing one and an empty file: only serve and token create make one', async () => {
    using folder = makeFolder()
    const [missing, empty] = [join(folder.path, 'missing.db'), join(folder.path, 'empty.db')]
    writeFileSync(empty, '')

    for (const answer of await runAll(missing)) expect(answer).toEqual(refusalWith(3, 'There is no database '))
    for (const answer of await runAll(empty)) {
      expect(answer).toEqual(refusal(3, `The database ${empty} has nothing in it yet.`))
    }
    expect(readdirSync(folder.path)).toEqual(['empty.db'])
    expect(statSync(empty).size).toBe(0)
  })

  test.each([
    ['that is not there', 'nothing', 'there is no such file'],
    ['that is a directory', '.', 'it is a directory'],
  ])('refuse a password file %s in one sentence, with exit code 3', async (_, name, reason) => {
    using folder = makeFolder()
    const where = 'postgres://me@127.0.0.1:1/plants'
    const file = join(folder.path, name)
    const from = ['copy', '--from', where, '--to', join(folder.path, 'copy.db'), '--from-password-file', file]

    const refused = refusal(
      3,
      `The database ${where} cannot be used: the file ${file} cannot be read, because ${reason}.`,
    )
    const list = ['user', 'list', '--database', where, '--database-password-file', file]
    expect([await runPlantstore(list), await runPlantstore(from)]).toEqual([refused, refused])
  })

  test.each(['backup plants.db', 'backup --dir .', 'backup -', 'restore plants.db', 'export', 'import', 'status'])(
    'refuse a PostgreSQL database in one line that names pg_dump, if they work on files: %s',
    async (command) => {
      expect(await runPlantstore([...command.split(' '), '--database', 'postgres://me@localhost/plants'])).toEqual(
        refusal(2, 'This works on a database file only: use pg_dump and pg_restore for a PostgreSQL database.'),
      )
    },
  )
})
