import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { makeDatabase } from './support/database.ts'

const TOKEN = /plst_[0-9A-Za-z]{49}/
const hasCurl = Bun.which('curl') !== null
const STARTS_AT_ONCE = 5

/** Waits until a server has printed what was asked for. */
async function printed(output: () => string, pattern: RegExp): Promise<string> {
  while (!pattern.test(output())) await Bun.sleep(5)
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
      ['with a certificate for a name', 'DNS:*.example.org,DNS:plants.example.org', toPort],
      ['with a certificate for a name, over a unix socket', 'DNS:plants.example.org', toSocket],
    ])('prints on stderr three lines for curl that work as they are %s', async (_, names, listenIn) => {
      using folder = makeFolder()
      const flags = ['--first-token', '--listen', listenIn(folder.path)]
      if (names !== undefined) {
        const { certPath, keyPath } = await makeCertificate(folder.path, "the plants' own", { names })
        flags.push('--tls-cert', certPath, '--tls-key', keyPath)
      }
      await using server = await serve(join(folder.path, 'plantstore.db'), flags)
      const answers = await runCurlLines(await printed(server.stderr, /DELETE.*\n/), folder.path)

      expect(answers).toEqual(['{"name":"Monstera"} 200', '[{"name":"Monstera"}] 200', ' 204'])
    })
  },
)

describe.concurrent('serve --first-token', () => {
  test('makes a token for user me, prints it only on stderr, and makes none at the second start', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const first = await serve(database, ['--first-token'])
    const [token = ''] = TOKEN.exec(await printed(first.stderr, TOKEN)) ?? []
    await first.end()
    await using second = await serve(database, ['--first-token'])
    const answer = await second.request('GET', '/plants', { token })
    await second.end()
    const { stdout } = await runPlantstore(['token', 'list', '--json', '--database', database])

    expect(answer.status).toBe(200)
    expect(first.stdout() + second.stdout() + second.stderr()).not.toMatch(TOKEN)
    expect(JSON.parse(stdout)).toMatchObject([{ id: 1, user: 'me', scope: 'write', state: 'active' }])
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

  test('starts several times at once on a new database with --first-token, and one server prints a token', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const servers = await Promise.all(Array.from({ length: STARTS_AT_ONCE }, () => serve(database, ['--first-token'])))
    await printed(() => servers.map((server) => server.stderr()).join(''), TOKEN)
    const token = await createTokenIn(database)
    const creates = servers.map((server, id) =>
      server.request('POST', '/plants', { token, body: { id, name: 'Fern' } }),
    )
    const statuses = (await Promise.all(creates)).map(({ status }) => status)
    const exitCodes = await Promise.all(servers.map((server) => server.end()))

    expect(statuses).toEqual(servers.map(() => 200))
    expect(exitCodes).toEqual(servers.map(() => 0))
    expect(servers.filter((server) => server.stderr().includes('plst_'))).toHaveLength(1)
  })
})
