import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { textOfLines } from '../../src/cli/io.ts'
import { provideFirstToken } from '../../src/cli/serve/first-token.ts'
import { createLogger } from '../../src/log.ts'
import { openStore } from '../../src/store/open.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { makeIo } from '../support/io.ts'
import { runProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { makeDatabase } from './support/database.ts'

const TOKEN = /plst_[0-9A-Za-z]{49}/
/** The last line for curl, with which the message about the first token ends if the server has no page. */
const END = /' \S+\/plants\n\n/
const hasCurl = Bun.which('curl') !== null

/** Waits until a server has printed what was asked for. */
async function printed(output: () => string, pattern: RegExp): Promise<string> {
  await until(`${pattern} is printed`, () => pattern.test(output()))
  return output()
}

const canCurl = hasCurl || process.env.CI === 'true'

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

describe.skipIf(!canCurl || lacks(OPENSSL))(
  `serve --first-token${canCurl ? '' : ' (skipped: there is no curl)'}`,
  () => {
    const toPort = () => '127.0.0.1:0'
    const toSocket = (folder: string) => `unix:${join(folder, "the plants' socket")}`

    test.each([
      ['over TCP', undefined, toPort],
      ['over a unix socket', undefined, toSocket],
      ['with a certificate for the address', 'IP:127.0.0.1', toPort],
    ])('prints on stderr two lines for curl that work as they are %s', async (_, names, listenIn) => {
      using folder = makeFolder()
      const flags = ['--first-token', '--listen', listenIn(folder.path)]
      if (names !== undefined) {
        const { certPath, keyPath } = await makeCertificate(folder.path, "the plants' own", { names })
        flags.push('--tls-cert', certPath, '--tls-key', keyPath)
      }
      await using server = await serve(join(folder.path, 'plantstore.db'), flags)
      const answers = await runCurlLines(await printed(server.stderr, END), folder.path)

      expect(answers).toEqual(['{"name":"Monstera"} 200', '[{"name":"Monstera"}] 200'])
    })
  },
)

describe.concurrent('serve --first-token', () => {
  test('makes a token for user me, prints it only on stderr, and makes none at the second start', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const first = await serve(database, ['--first-token'])
    const [token = ''] = TOKEN.exec(await printed(first.stderr, END)) ?? []
    await first.end()
    await using second = await serve(database, ['--first-token'])
    const answer = await second.request('GET', '/plants', { token })
    await second.end()
    const { stdout } = await runPlantstore(['token', 'list', '--json', '--database', database])

    expect(answer.status).toBe(200)
    expect(first.stderr()).toEndWith(
      `/plants\n\nThe page: ${first.address}/\nThe API documentation: ${first.address}/docs\n\n`,
    )
    expect(first.stdout() + second.stdout() + second.stderr()).not.toMatch(TOKEN)
    expect(JSON.parse(stdout)).toMatchObject([{ id: 1, user: 'me', scope: 'write', state: 'active' }])
  })

  test('prints at the next start the URLs, and a command that makes another token as it is', async () => {
    using folder = makeFolder()
    const database = join(folder.path, "the plants' own.db")
    const old = await createTokenIn(database)
    await using server = await serve(database, ['--first-token'])
    const [, page, docs, command = ''] =
      /^\nThe page: (.+)\nThe API documentation: (.+)\nFor another token, run: (.+)\n\n$/.exec(
        await printed(server.stderr, /token create.*\n\n/),
      ) ?? []
    const made = await runProgram(['sh', '-c', command], { env: {}, cwd: '/' })
    const token = made.stdout.trim()

    expect([page, docs]).toEqual([`${server.address}/`, `${server.address}/docs`])
    expect([token !== old, (await server.request('GET', '/plants', { token })).status]).toEqual([true, 200])
  })

  test('names no page if it serves none, at the first start and later', async () => {
    using folder = makeFolder()
    const start = () => serve(join(folder.path, 'plantstore.db'), ['--first-token', '--no-docs', '--no-page'])
    await using first = await start()
    const toldFirst = await printed(first.stderr, END)
    await first.end()
    await using second = await start()

    const told = toldFirst + (await printed(second.stderr, /token create.*\n\n/))
    expect(told).not.toMatch(/page|\/docs/)
  })
})

describe.concurrent('serve', () => {
  test('logs how to make a token if there is none, and prints no secret', async () => {
    using made = makeDatabase()
    await using server = await serve(made.database)
    await printed(() => server.stdout() + server.stderr(), /token create --user NAME/)
    await server.end()
    const { stdout } = await made.run('token', 'list', '--json')

    expect(server.stdout() + server.stderr()).not.toContain('plst_')
    expect(stdout).toBe('[]\n')
  })
})

const ADDRESS = { host: '127.0.0.1', port: 3000 }

/** A store without tokens, whose lock another program holds, and a server that makes the first one. */
async function openLocked() {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const store = await openStore(database, () => {})
  const other = new Database(database)
  other.run('begin immediate')
  const told: string[] = []
  const lifecycle = { isDraining: false }
  const log = createLogger('error', { write: () => {} })
  const tell = async (lines: string | readonly string[]) => void told.push(textOfLines(lines))
  const io = { ...makeIo().io, tell }
  const options = { database, firstToken: true, page: true, docs: true } as const
  const provided = provideFirstToken({ store, address: ADDRESS, log, options, io }, lifecycle)
  // Waits for the lock as long as the first token does. When this is refused, the first token was refused before.
  await expect(store.checkReady()).rejects.toMatchObject({ kind: 'store_busy' })
  return {
    ...{ store, lifecycle, told, provided },
    unlock: () => other.run('commit'),
    async [Symbol.asyncDispose]() {
      other.close(true)
      await store.close()
      folder[Symbol.dispose]()
    },
  }
}

describe.concurrent('a server whose store another program has locked', () => {
  test('makes the first token when the lock is gone', async () => {
    await using opened = await openLocked()

    expect(opened.told).toEqual([])
    opened.unlock()
    await opened.provided

    expect(opened.told).toEqual([expect.stringMatching(TOKEN)])
    expect(await opened.store.listTokens()).toHaveLength(1)
  })

  test('makes no first token once it drains', async () => {
    await using opened = await openLocked()

    opened.lifecycle.isDraining = true
    await opened.provided

    expect(opened.told).toEqual([])
    opened.unlock()
    expect(await opened.store.listTokens()).toEqual([])
  })
})
