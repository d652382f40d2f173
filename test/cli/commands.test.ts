import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'

const MISUSES: readonly string[][] = [
  [],
  ['token'],
  ['user'],
  ['serf'],
  ['token', 'make'],
  ['user', 'rename'],
  ['help', 'nothing'],
  ['serve', '--colour'],
  ['serve', '-x'],
  // The name of --metrics-listen before version 1.
  ['serve', '--ops-listen', '127.0.0.1:0'],
  ['check', 'plantstore.db'],
  ['token', 'create'],
  ['token', 'revoke'],
  ['token', 'revoke', '0'],
  ['token', 'revoke', 'one'],
  ['token', 'revoke', '1', '2'],
  ['token', 'revoke', '1', '--user', 'me'],
  ['user', 'delete'],
  ['user', 'delete', '--yes'],
  ['user', 'delete', 'me'],
  ['user', 'delete', 'm e', '--yes'],
  ['serve', '--database'],
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
      ['Information', 'openapi', 'licenses', 'help'],
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
    const [forged, mistyped] = await Promise.all([
      runPlantstore(['a\n\u001b[2K\u009b\u202eb']),
      runPlantstore(['status', '--databas', 'x']),
    ])

    expect(forged.stderr).toBe(`${String.raw`plantstore: unknown command 'a\u000a\u001b[2K\u009b\u202eb'`}\n`)
    expect(mistyped.stderr).toBe("plantstore: unknown option '--databas' (Did you mean --database?)\n")
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

describe.concurrent('licenses', () => {
  test('prints the licences of all third-party software, without a database', async () => {
    using folder = makeFolder()
    const printed = await runPlantstore(['licenses'], { cwd: folder.path })

    expect(printed).toEqual({
      stdout: await Bun.file(join(import.meta.dir, '../../src/cli/third-party-licenses.txt')).text(),
      stderr: '',
      exitCode: 0,
    })
    expect(readdirSync(folder.path)).toEqual([])
  })
})

describe.concurrent('openapi', () => {
  test('prints the document that a server serves, without a server and without a database', async () => {
    using folder = makeFolder()
    const printed = await runPlantstore(['openapi'], { cwd: folder.path })
    const files = readdirSync(folder.path)
    await using server = await serve(join(folder.path, 'plantstore.db'))
    const served = await fetch(`${server.url}/openapi.json`)

    expect(printed).toMatchObject({ stderr: '', exitCode: 0 })
    expect(JSON.parse(printed.stdout)).toEqual(await served.json())
    expect(files).toEqual([])
  })
})
