import { describe, expect, test } from 'bun:test'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

const JSON_FLAGS = ['--log-format', 'json']
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** The lines of a text, all of which are JSON. */
const recordsOf = (text: string): unknown[] =>
  (text === '' ? [] : text.trimEnd().split('\n')).map((line) => JSON.parse(line))

const fatal = (msg: string) => ({ level: 'fatal', time: TIME, msg: expect.stringContaining(msg) })

describe.concurrent('stderr of a server with --log-format json', () => {
  test.each([
    ['a bad value before it', ['--max-body', 'x', ...JSON_FLAGS], {}, 2, '--max-body (PLANTSTORE_MAX_BODY) must be'],
    ['a bad value behind it', ['--log-format=json', '--max-body', 'x'], {}, 2, '--max-body (PLANTSTORE_MAX_BODY) must'],
    ['a bad variable', JSON_FLAGS, { PLANTSTORE_LIST_MAX: 'x' }, 2, '--list-max (PLANTSTORE_LIST_MAX) must be a whole'],
    ['an unknown option', [...JSON_FLAGS, '--bogus'], {}, 2, "unknown option '--bogus'"],
    ['the variable PLANTSTORE_LOG_FORMAT', ['--bogus'], { PLANTSTORE_LOG_FORMAT: 'json' }, 2, "option '--bogus'"],
    ['options that do not fit', [...JSON_FLAGS, '--drain-wait', '9s'], {}, 2, 'must be shorter than --drain.'],
    ['a missing file', [...JSON_FLAGS, '--tls-cert', 'no.crt', '--tls-key', 'no.key'], {}, 2, 'Cannot read no.crt'],
    ['an address of others', [...JSON_FLAGS, '--listen', '192.0.2.1:0'], {}, 1, 'Cannot listen on http://192.0.2.1:0'],
    ['a database of others', [...JSON_FLAGS, '--database', '/'], {}, 3, '/'],
  ])('has one line of JSON for an error at the start: %s', async (_, flags, env, exitCode, msg) => {
    using folder = makeFolder()

    const ended = await runPlantstore(['serve', ...flags], { cwd: folder.path, env })

    expect([recordsOf(ended.stderr), ended.exitCode]).toEqual([[fatal(msg)], exitCode])
    for (const line of recordsOf(ended.stdout)) expect(line).toMatchObject({ time: TIME })
  })

  test('has lines of JSON for a warning and for the first token, which works', async () => {
    using made = makeDatabase()
    const env = { PLANTSTORE_PORT: '3000' }
    await using server = await serve(made.database, [...JSON_FLAGS, '--first-token'], { env })
    await until('the token is printed', () => server.stderr().includes('plst_'))
    const [token = ''] = /plst_\w+/.exec(server.stderr()) ?? []
    const { status } = await server.request('GET', '/plants', { token })
    await server.end()

    expect(recordsOf(server.stderr())).toEqual([
      { level: 'warn', time: TIME, msg: 'There is no variable PLANTSTORE_PORT: it is ignored.' },
      { level: 'info', time: TIME, msg: expect.stringContaining(token) },
    ])
    expect(status).toBe(200)
    expect(recordsOf(server.stdout())).not.toEqual([])
    expect(server.stdout()).not.toContain(token)
  })

  test('is for people without the option, also if the log is in JSON', async () => {
    const { stderr } = await runPlantstore(['serve', '--bogus', '--log-format', 'pretty'], {
      env: { PLANTSTORE_LOG_FORMAT: 'json' },
    })
    await using service = await serveDatabase([], { env: { PLANTSTORE_PORT: '3000' } })
    await service.server.end()

    expect(stderr).toBe("plantstore: unknown option '--bogus'. Try --help or --version.\n")
    expect(service.server.stderr()).toBe('plantstore: There is no variable PLANTSTORE_PORT: it is ignored.\n')
    expect(recordsOf(service.server.stdout())).not.toEqual([])
  })

  test('is for people in every other command', async () => {
    using made = makeDatabase()
    const env = { PLANTSTORE_LOG_FORMAT: 'json' }

    const { stderr } = await runPlantstore(['status', '--database', made.database], { env })

    expect(stderr).toStartWith('plantstore: ')
  })
})
