import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { makeDatabase } from './support/database.ts'
import { statusOf } from './support/service-client.ts'

const TOKEN = /plst_[0-9A-Za-z]{49}/
/** The last line for curl, with which the message about the first token ends if the server has no page. */
const END = /' \S+\/plants\n\n/
/** Waits until a server has printed what was asked for. */
async function printed(output: () => string, pattern: RegExp): Promise<string> {
  await until(`${pattern} is printed`, () => pattern.test(output()))
  return output()
}

/** Runs the lines for curl that a server printed, as they are, and returns what each said and its status. */
async function runCurlLines(told: string, home: string): Promise<string[]> {
  writeFileSync(join(home, '.curlrc'), 'silent\nwrite-out = " %{http_code}"\n')
  const answers: string[] = []
  for (const line of told.split('\n').filter((line) => line.trimStart().startsWith('curl '))) {
    const shell = Bun.spawn(['sh', '-c', line], { env: { PATH: process.env.PATH ?? '', HOME: home } })
    answers.push(await shell.stdout.text())
  }
  return answers
}

describe.skipIf(lacks(OPENSSL, program('curl')))('serve --first-token prints on stderr', () => {
  const toPort = () => '127.0.0.1:0'
  const toSocket = (folder: string) => `unix:${join(folder, "the plants' socket")}`

  test.each([
    ['over TCP', undefined, toPort],
    ['over a unix socket', undefined, toSocket],
    ['with a certificate for the address', 'IP:127.0.0.1', toPort],
  ])('two lines for curl that work as they are %s', async (_, names, listenIn) => {
    using made = makeDatabase()
    const flags = ['--first-token', '--listen', listenIn(made.folder)]
    if (names !== undefined) {
      const { certPath, keyPath } = await makeCertificate(made.folder, "the plants' own", { names })
      flags.push('--tls-cert', certPath, '--tls-key', keyPath)
    }
    await using server = await serve(made.database, flags)
    const answers = await runCurlLines(await printed(server.stderr, END), made.folder)

    expect(answers).toEqual(['{"name":"Monstera"} 200', '[{"name":"Monstera"}] 200'])
  })
})

describe.concurrent('serve --first-token', () => {
  test('makes a token for user me, prints it only on stderr, and makes none at the second start', async () => {
    using made = makeDatabase()
    const first = await serve(made.database, ['--first-token'])
    const [token = ''] = TOKEN.exec(await printed(first.stderr, END)) ?? []
    await first.end()
    await using second = await serve(made.database, ['--first-token'])
    const status = await statusOf(second, '/plants', token)
    await second.end()

    expect(status).toBe(200)
    expect(first.stderr()).toEndWith(
      `/plants\n\nThe page: ${first.address}/\nThe API documentation: ${first.address}/docs\n\n`,
    )
    expect(first.stdout() + second.stdout() + second.stderr()).not.toMatch(TOKEN)
    expect(await made.tokens()).toMatchObject([{ id: 1, user: 'me', scope: 'write', state: 'active' }])
  })

  test('prints at the next start the URLs, and a command that makes another token as it is', async () => {
    using folder = makeFolder()
    const database = join(folder.path, "the plants' own.db")
    const old = await createTokenIn(database)
    await using server = await serve(database, ['--first-token'])
    const told = await printed(server.stderr, /token create.*\n\n/)
    const [, page, docs, command = ''] =
      /^\nThe page: (.+)\nThe API documentation: (.+)\nFor another token, run: (.+)\n\n$/.exec(told) ?? []
    const token = (await runProgram(['sh', '-c', command], { env: {}, cwd: '/' })).stdout.trim()

    expect([page, docs]).toEqual([`${server.address}/`, `${server.address}/docs`])
    expect([token !== old, await statusOf(server, '/plants', token)]).toEqual([true, 200])
  })

  test('names no page if it serves none, at the first start and later', async () => {
    using made = makeDatabase()
    const start = () => serve(made.database, ['--first-token', '--no-docs', '--no-page'])
    await using first = await start()
    const toldFirst = await printed(first.stderr, END)
    await first.end()
    await using second = await start()

    expect(toldFirst + (await printed(second.stderr, /token create.*\n\n/))).not.toMatch(/page|\/docs/)
  })
})

test('serve logs how to make a token if there is none, and prints no secret', async () => {
  using made = makeDatabase()
  await using server = await serve(made.database)
  await printed(() => server.stdout() + server.stderr(), /token create --user NAME/)
  await server.end()

  expect(server.stdout() + server.stderr()).not.toContain('plst_')
  expect(await made.tokens()).toEqual([])
})

describe.concurrent('a server whose database another program has locked', () => {
  const serveLocked = async () => {
    const made = makeDatabase()
    await (await openStore(made.database, () => {})).close()
    const other = new Database(made.database)
    other.run('begin immediate')
    const server = await serve(made.database, ['--first-token'])
    // Waits for the lock as long as the first token does. When this is refused, the first token was refused before.
    expect([await statusOf(server, '/readyz'), server.stderr()]).toEqual([503, ''])
    return {
      ...{ made, server, other },
      async [Symbol.asyncDispose]() {
        await server.kill()
        other.close(true)
        made[Symbol.dispose]()
      },
    }
  }

  test('makes the first token when the lock is gone', async () => {
    await using locked = await serveLocked()
    locked.other.run('commit')
    await printed(locked.server.stderr, TOKEN)

    expect(await locked.made.tokens()).toHaveLength(1)
  })

  test('makes no first token once it drains', async () => {
    await using locked = await serveLocked()
    const exitCode = await locked.server.end()
    locked.other.run('commit')

    expect([exitCode, locked.server.stderr()]).toEqual([0, ''])
    expect(await locked.made.tokens()).toEqual([])
  })
})
