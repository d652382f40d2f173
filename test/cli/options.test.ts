import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { OPTIONS } from '../../src/config.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'

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
  ['force', 'restore plants.db'],
  ['atomic', 'import'],
  ['snapshot', 'copy --from plants.db --to other.db'],
  ['json', 'token list'],
  ['yes', 'user delete me'],
] as const

const createToken = async (database: string, args: readonly string[], env: Record<string, string> = {}) => {
  await runPlantstore(['token', 'create', '--database', database, ...args], { env })
  const { stdout } = await runPlantstore(['token', 'list', '--json', '--database', database])
  const [token] = JSON.parse(stdout)
  return { ...token, lifetimeMs: Date.parse(token.expires) - Date.parse(token.created) }
}

describe.concurrent('a bad value', () => {
  test.each(BAD_VALUES)('of %s is told for %s in one line, as flag and as variable', async (name, command, text) => {
    using folder = makeFolder()
    const { long, envVar = '' } = OPTIONS[name]()
    const answers = await Promise.all([
      runPlantstore([...command.split(' '), long ?? '', text], { cwd: folder.path }),
      runPlantstore(command.split(' '), { cwd: folder.path, env: { [envVar]: text } }),
    ])

    for (const { stdout, stderr, exitCode } of answers) {
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
      expect(stderr).toMatch(/^[^\n]+\n$/)
      expect(stderr).toContain(`${long} (${envVar}) must be `)
    }
  })

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

  test('is there for every option', () => {
    const named = new Set<string>([...BAD_VALUES, ...BOOLEANS].map(([name]) => name))

    expect(Object.keys(OPTIONS).filter((name) => !named.has(name))).toEqual([])
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
  test('beats the default, and a flag beats the variable: user, scope, label, expires and database', async () => {
    using folder = makeFolder()
    const env = {
      PLANTSTORE_USER: 'variable',
      PLANTSTORE_SCOPE: 'read',
      PLANTSTORE_LABEL: 'of the variable',
      PLANTSTORE_EXPIRES: '1d',
    }
    const flags = ['--user', 'flag', '--scope', 'write', '--label', 'of the flag', '--expires', '2h']
    const [byDefault, byVariable, byFlag] = await Promise.all([
      createToken(join(folder.path, 'default.db'), ['--user', 'me']),
      createToken(join(folder.path, 'variable.db'), [], env),
      createToken(join(folder.path, 'flag.db'), flags, { ...env, PLANTSTORE_DATABASE: join(folder.path, 'none.db') }),
    ])

    expect(byDefault).toMatchObject({ user: 'me', scope: 'write', label: null, expires: null })
    expect(byVariable).toMatchObject({
      user: 'variable',
      scope: 'read',
      label: 'of the variable',
      lifetimeMs: 86_400_000,
    })
    expect(byFlag).toMatchObject({ user: 'flag', scope: 'write', label: 'of the flag', lifetimeMs: 7_200_000 })
    expect(await Bun.file(join(folder.path, 'none.db')).exists()).toBe(false)
  })

  test('beats the default, and a flag beats the variable: database, in the working directory', async () => {
    using folder = makeFolder()
    const exists = (name: string) => Bun.file(join(folder.path, name)).exists()
    const create = ['token', 'create', '--user', 'me']
    await runPlantstore(create, { cwd: folder.path, env: { PLANTSTORE_DATABASE: 'variable.db' } })
    const afterVariable = await exists('plantstore.db')
    await runPlantstore(create, { cwd: folder.path })

    expect([await exists('variable.db'), afterVariable, await exists('plantstore.db')]).toEqual([true, false, true])
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
    ['false', 'id  user'],
    ['true', '[\n  {\n    "id": 1'],
  ])('that is %s means just that for a boolean', async (text, opening) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await runPlantstore(['token', 'create', '--user', 'me', '--database', database])
    const list = ['token', 'list', '--database', database]
    const { stdout } = await runPlantstore(list, { env: { PLANTSTORE_JSON: text } })

    expect(stdout).toStartWith(opening)
  })

  test('that is false does not beat the flag of a boolean', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await runPlantstore(['token', 'create', '--user', 'me', '--database', database])
    const list = ['token', 'list', '--json', '--database', database]
    const { stdout } = await runPlantstore(list, { env: { PLANTSTORE_JSON: 'false' } })

    expect(JSON.parse(stdout)).toMatchObject([{ id: 1 }])
  })

  test.each([
    ['true', 404],
    ['false', 200],
  ])('that is %s switches the documentation, which is on by default', async (text, status) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database, [], { env: { PLANTSTORE_NO_DOCS: text } })
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
