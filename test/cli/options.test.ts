import { describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { createTokenIn } from '../support/tokens.ts'

describe.concurrent('serve refuses', () => {
  // option-rules.test.ts tries every option of every command inside the process of the test.
  test.each([
    ['a bad flag', ['--max-body', '64KB'], {}, '--max-body (PLANTSTORE_MAX_BODY) must be a size with a unit'],
    ['a bad variable', [], { PLANTSTORE_MAX_BODY: '' }, '--max-body (PLANTSTORE_MAX_BODY) must be a size with a unit'],
    ['a variable of a flag that is not true or false', [], { PLANTSTORE_NO_DOCS: 'yes' }, 'must be true or false.'],
    ['a drain wait as long as the drain', ['--drain', '2s', '--drain-wait', '2s'], {}, 'must be shorter than --drain.'],
    ['a burst without a rate', ['--rate-burst', '5'], {}, '--rate-burst (PLANTSTORE_RATE_BURST) needs --rate-limit.'],
  ])('%s in one line, with exit code 2', async (_, flags, env, message) => {
    using folder = makeFolder()
    const { stdout, stderr, exitCode } = await runPlantstore(['serve', ...flags], { cwd: folder.path, env })

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toMatch(/^plantstore: --[^\n]+\n$/)
    expect(stderr).toContain(message)
  })
})

describe.concurrent('a variable', () => {
  test('of the database beats the default path', async () => {
    using folder = makeFolder()
    const create = ['token', 'create', '--user', 'me']
    await runPlantstore(create, { cwd: folder.path, env: { PLANTSTORE_DATABASE: 'variable.db' } })
    await runPlantstore(create, { cwd: folder.path })

    expect(readdirSync(folder.path).sort()).toEqual(['plantstore.db', 'variable.db'])
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

  test('with our prefix and without an option gets a warning, and the command goes on', async () => {
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

describe.concurrent('the arguments of a command', () => {
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

  test('have no variables: without arguments nothing is deleted, revoked, replaced or copied', async () => {
    using made = await makeDatabase()
    writeFileSync(join(made.path, 'backup.db'), 'here before')
    const answers = await Promise.all([
      made.run('user', 'delete', 'me'),
      made.run('token', 'revoke'),
      made.run('token', 'create'),
      made.run('copy'),
      made.run('backup', 'backup.db'),
    ])
    const [tokens, exported] = await Promise.all([made.run('token', 'list', '--json'), made.run('export')])

    expect(answers[0]?.stderr).toContain('There is no variable PLANTSTORE_YES: it is ignored.')
    expect(answers[0]?.stderr).toEndWith('plantstore: This deletes all plants of me for good: repeat it with --yes.\n')
    expect(exported.stdout.trim().split('\n')).toHaveLength(2)
    expect(answers.map(({ exitCode }) => exitCode)).toEqual([2, 2, 2, 2, 1])
    expect(JSON.parse(tokens.stdout)).toMatchObject([
      { user: 'me', state: 'active' },
      { user: 'you', state: 'active' },
    ])
    expect(await Bun.file(join(made.path, 'backup.db')).text()).toBe('here before')
    expect(await Bun.file(join(made.path, 'copy.db')).exists()).toBe(false)
  })
})
