import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OPTIONS } from '../../src/config.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { createTokenIn } from '../support/tokens.ts'

/** For every option with a value: a command that takes it, and a text that it refuses. */
const BAD_VALUES: readonly (readonly [name: keyof typeof OPTIONS, command: string, text: string])[] = [
  ['listen', 'serve', '3000'],
  ['database', 'serve', ''],
  ['database', 'check', ''],
  ['maxBody', 'serve', '64KB'],
  ['listMax', 'serve', '0'],
  ['rateLimit', 'serve', '100'],
  ['rateBurst', 'serve --rate-limit 100/s', '0'],
  ['maxInFlight', 'serve', '0'],
  ['idleTimeout', 'serve', '4s'],
  ['tlsCert', 'serve', ''],
  ['tlsCert', 'healthcheck', ''],
  ['tlsKey', 'serve', ''],
  ['drain', 'serve', '8'],
  ['drainWait', 'serve', '2sec'],
  ['logLevel', 'serve', 'loud'],
  ['accessLog', 'serve', 'maybe'],
  ['corsOrigin', 'serve', '*'],
  ['publicUrl', 'serve', 'ftp://plants.example.org'],
  ['user', 'token create', 'm e'],
  ['durability', 'serve', 'none'],
  ['databasePasswordFile', 'check', ''],
  ['databasePrepare', 'user list', 'off'],
  ['user', 'token revoke', 'a\nb'],
  ['scope', 'token create --user me', 'admin'],
  ['expires', 'token create --user me', '90'],
  ['label', 'token create --user me', 'two\nlines'],
  ['dir', 'backup', ''],
  ['keep', 'backup --dir .', '0'],
  ['onConflict', 'import', 'merge'],
  ['opsListen', 'serve', '3000'],
  ['logFormat', 'serve', 'loud'],
  ['from', 'copy --to plants.db', 'mysql://me@db/plants'],
  ['fromPasswordFile', 'copy --from plants.db --to other.db', ''],
  ['to', 'copy --from plants.db', ':memory:'],
  ['toPasswordFile', 'copy --from plants.db --to other.db', ''],
]

const BOOLEANS = [
  ['firstToken', 'serve'],
  ['noDocs', 'serve'],
] as const

describe.concurrent('a bad value', () => {
  test.each(BAD_VALUES)(
    'of %s is told for %s in one line, as flag and, if it has one, as variable',
    async (name, command, text) => {
      using folder = makeFolder()
      const { long, envVar } = OPTIONS[name]()
      const answers = await Promise.all([
        runPlantstore([...command.split(' '), long ?? '', text], { cwd: folder.path }),
        ...(envVar === undefined
          ? []
          : [runPlantstore(command.split(' '), { cwd: folder.path, env: { [envVar]: text } })]),
      ])

      for (const { stdout, stderr, exitCode } of answers) {
        expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
        expect(stderr).toMatch(/^[^\n]+\n$/)
        expect(stderr).toContain(`${envVar === undefined ? long : `${long} (${envVar})`} must be `)
      }
    },
  )

  test.each(BOOLEANS)('of %s is told for %s in one line, as variable', async (name, command) => {
    using folder = makeFolder()
    const { long, envVar = '' } = OPTIONS[name]()
    const texts = ['yes', '']
    const answers = await Promise.all(
      texts.map((text) => runPlantstore(command.split(' '), { cwd: folder.path, env: { [envVar]: text } })),
    )

    for (const { stdout, stderr, exitCode } of answers) {
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
      expect(stderr).toMatch(/^[^\n]+\n$/)
      expect(stderr).toEndWith(`${long} (${envVar}) must be true or false.\n`)
    }
  })

  test('is there for every option with a value or a variable', () => {
    const named = new Set<string>([...BAD_VALUES, ...BOOLEANS].map(([name]) => name))
    const left = Object.entries(OPTIONS).filter(([name]) => !named.has(name))

    expect(left.filter(([, option]) => option().required || option().envVar !== undefined)).toEqual([])
  })

  test('is a drain wait that leaves nothing of the drain', async () => {
    const { stderr, exitCode } = await runPlantstore(['serve', '--drain', '2s', '--drain-wait', '2s'])

    expect(exitCode).toBe(2)
    expect(stderr).toMatch(/^[^\n]*--drain-wait \(PLANTSTORE_DRAIN_WAIT\) must be shorter than --drain[^\n]*\n$/)
  })

  test('is a burst of a rate that has no limit', async () => {
    const { stderr, exitCode } = await runPlantstore(['serve', '--rate-burst', '5'])

    expect(exitCode).toBe(2)
    expect(stderr).toMatch(/^[^\n]*--rate-burst \(PLANTSTORE_RATE_BURST\) needs --rate-limit[^\n]*\n$/)
  })
})

describe.concurrent('a variable', () => {
  test('beats the default, and a flag beats the variable: database, in the working directory', async () => {
    using folder = makeFolder()
    const exists = (name: string) => Bun.file(join(folder.path, name)).exists()
    const create = ['token', 'create', '--user', 'me']
    await runPlantstore(create, { cwd: folder.path, env: { PLANTSTORE_DATABASE: 'variable.db' } })
    const afterVariable = await exists('plantstore.db')
    await runPlantstore(create, { cwd: folder.path })
    const byFlag = [...create, '--database', 'flag.db']
    await runPlantstore(byFlag, { cwd: folder.path, env: { PLANTSTORE_DATABASE: 'other.db' } })

    expect([await exists('variable.db'), afterVariable, await exists('plantstore.db')]).toEqual([true, false, true])
    expect([await exists('flag.db'), await exists('other.db')]).toEqual([true, false])
  })

  test('beats the default, and a flag beats the variable: public URL', async () => {
    const env = { PLANTSTORE_PUBLIC_URL: 'https://variable.example.org' }
    const answers = await Promise.all([
      runPlantstore(['openapi']),
      runPlantstore(['openapi'], { env }),
      runPlantstore(['openapi', '--public-url', 'https://flag.example.org/api/'], { env }),
    ])

    expect(answers.map(({ stdout }) => JSON.parse(stdout).servers)).toEqual([
      [{ url: '/' }],
      [{ url: 'https://variable.example.org' }],
      [{ url: 'https://flag.example.org/api' }],
    ])
  })

  test.each([
    ['true', [], 404],
    ['false', [], 200],
    ['false', ['--no-docs'], 404],
  ])('that is %s with the flags %p switches the documentation, which is on by default', async (text, flags, status) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database, flags, { env: { PLANTSTORE_NO_DOCS: text } })
    const statuses = await Promise.all(
      ['/docs', '/openapi.json'].map(async (path) => (await server.request('GET', path)).status),
    )

    expect(statuses).toEqual([status, status])
  })

  test('with our prefix that no option has is told, and the command goes on', async () => {
    const env = { PLANTSTORE_PORT: '3000', PLANTSTORE_LSTEN: '127.0.0.1:3000' }
    const [plain, warned] = await Promise.all([runPlantstore(['openapi']), runPlantstore(['openapi'], { env })])

    expect(warned).toMatchObject({ stdout: plain.stdout, exitCode: 0 })
    expect(warned.stderr).toMatch(/^[^\n]*PLANTSTORE_PORT[^\n]*\n[^\n]*PLANTSTORE_LSTEN[^\n]*\n$/)
    expect(plain.stderr).toBe('')
  })

  test('that Kubernetes sets for a Service is ignored in silence', async () => {
    const ofService = (name: string, port: number, protocol: string) => ({
      [`${name}_SERVICE_HOST`]: '10.96.0.7',
      [`${name}_SERVICE_PORT`]: `${port}`,
      [`${name}_SERVICE_PORT_HTTP`]: `${port}`,
      [`${name}_PORT`]: `${protocol}://10.96.0.7:${port}`,
      [`${name}_PORT_${port}_${protocol.toUpperCase()}`]: `${protocol}://10.96.0.7:${port}`,
      [`${name}_PORT_${port}_${protocol.toUpperCase()}_PROTO`]: protocol,
      [`${name}_PORT_${port}_${protocol.toUpperCase()}_PORT`]: `${port}`,
      [`${name}_PORT_${port}_${protocol.toUpperCase()}_ADDR`]: '10.96.0.7',
    })
    const env = { ...ofService('PLANTSTORE', 80, 'tcp'), ...ofService('PLANTSTORE_METRICS', 9090, 'udp') }
    const { stderr, exitCode } = await runPlantstore(['openapi'], { env })

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
  })
})

describe.concurrent('what a command does to data', () => {
  /** A database of two users, and how to run a command on it with variables that are no variables of ours. */
  const makeDatabase = async () => {
    const folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const run = (...args: readonly string[]) =>
      runPlantstore(args, {
        cwd: folder.path,
        env: {
          PLANTSTORE_DATABASE: database,
          PLANTSTORE_YES: 'true',
          PLANTSTORE_FORCE: 'true',
          PLANTSTORE_USER: 'me',
          PLANTSTORE_SCOPE: 'read',
          PLANTSTORE_EXPIRES: '1s',
          PLANTSTORE_FROM: database,
          PLANTSTORE_TO: 'copy.db',
        },
      })
    for (const user of ['me', 'you']) await createTokenIn(database, user)
    addPlants(database, 1)
    return { path: folder.path, run, [Symbol.dispose]: folder[Symbol.dispose] }
  }

  test('is not taken from a variable: nothing is deleted, revoked, replaced or copied', async () => {
    using made = await makeDatabase()
    writeFileSync(join(made.path, 'backup.db'), 'here before')
    const answers = await Promise.all([
      made.run('user', 'delete', 'me'),
      made.run('token', 'revoke'),
      made.run('token', 'create'),
      made.run('copy'),
      made.run('backup', 'backup.db'),
    ])
    const tokens = await made.run('token', 'list', '--json')

    expect(answers.map(({ exitCode }) => exitCode)).toEqual([2, 2, 2, 2, 1])
    expect(JSON.parse(tokens.stdout)).toMatchObject([
      { user: 'me', state: 'active' },
      { user: 'you', state: 'active' },
    ])
    expect(await Bun.file(join(made.path, 'backup.db')).text()).toBe('here before')
    expect(await Bun.file(join(made.path, 'copy.db')).exists()).toBe(false)
  })

  test('is not taken from a variable: an export holds the plants of all users', async () => {
    using made = await makeDatabase()
    const { stdout } = await made.run('export')

    expect(stdout.trim().split('\n')).toHaveLength(2)
  })

  test('is told not to be taken from a variable', async () => {
    using made = await makeDatabase()
    const { stderr } = await made.run('user', 'delete', 'me')

    expect(stderr).toContain('There is no variable PLANTSTORE_YES: it is ignored.')
    expect(stderr).toEndWith('plantstore: This deletes all plants of me for good: repeat it with --yes.\n')
  })
})
