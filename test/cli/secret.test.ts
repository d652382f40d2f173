import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'

const SECRET_LENGTH = 43
const hasProc = process.platform === 'linux'

/** Uses a token in every way that is right, and in those that somebody takes for right. Returns all that came back. */
async function use(url: string, token: string): Promise<string> {
  const own = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const requests: [path: string, init: RequestInit][] = [
    ['/plants', { method: 'POST', headers: own, body: '{"id":1,"name":"Fern"}' }],
    ['/plants', { method: 'POST', headers: own, body: '{"id":1,"name":"Fern"}' }],
    ['/plants', { headers: own }],
    ['/plants/1', { method: 'DELETE', headers: own }],
    ['/plants?limit=x', { headers: own }],
    [`/${token}`, {}],
    [`/plants/${token}`, { method: 'DELETE', headers: own }],
    [`/plants?access_token=${token}`, {}],
    [`/plants?limit=${token}`, { headers: own }],
    ['/plants', { headers: { cookie: `access_token=${token}` } }],
    ['/plants', { headers: { authorization: `Basic ${token}` } }],
    ['/plants', { headers: { authorization: token } }],
    ['/plants', { headers: { ...own, 'x-request-id': token } }],
    ['/plants', { method: 'POST', headers: own, body: `{"access_token":"${token}"}` }],
    ['/plants', { method: 'POST', headers: own, body: `{"id":"${token}","name":1}` }],
    ['/plants', { method: 'POST', headers: own, body: token }],
    ['/plants', { method: 'POST', headers: { ...own, 'content-type': `text/${token}` }, body: token }],
  ]
  let answers = ''
  for (const [path, init] of requests) {
    const answer = await fetch(url + path, init)
    answers += `${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}\n`
  }
  return answers
}

const filesIn = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'latin1')]))

describe('the secret of a token', () => {
  test('is nowhere after its use: in answers, logs, files, arguments, environment and lists', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const created = await runPlantstore(['token', 'create', '--user', 'me', '--database', database])
    const token = created.stdout.trim()
    const secret = token.slice('plst_'.length, 'plst_'.length + SECRET_LENGTH)
    await using server = await serve(database, ['--log-level', 'debug'])
    const answers = await use(server.url, token)
    const proc = (name: string) => (hasProc ? readFileSync(`/proc/${server.pid}/${name}`, 'latin1') : name)
    const [cmdline, environ, whileServing] = [proc('cmdline'), proc('environ'), filesIn(folder.path)]
    const listed = await runPlantstore(['token', 'list', '--json', '--database', database])
    const revoked = await runPlantstore(['token', 'revoke', '-', '--database', database], { stdin: token })
    await server.end()

    const places = {
      answers,
      stdout: server.stdout(),
      stderr: server.stderr(),
      cmdline,
      environ,
      whileServing: JSON.stringify(whileServing),
      afterwards: JSON.stringify(filesIn(folder.path)),
      commands: created.stderr + JSON.stringify([listed, revoked]),
    }
    expect(secret).toHaveLength(SECRET_LENGTH)
    expect(revoked.exitCode).toBe(0)
    expect(Object.keys(whileServing).sort()).toEqual(['plantstore.db', 'plantstore.db-shm', 'plantstore.db-wal'])
    expect(answers).toMatch(/^200 .*\n409 .*\n200 .*\n204 /)
    expect(places.stdout).toContain('"path":"/plants"')
    expect(
      Object.entries(places)
        .filter(([, text]) => text.includes(secret))
        .map(([name]) => name),
    ).toEqual([])
  })

  test('of the first token is on stderr alone, once', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database, ['--first-token', '--log-level', 'debug'])
    while (!server.stderr().includes('DELETE')) await Bun.sleep(5)
    const [token = ''] = /plst_[0-9A-Za-z]{49}/.exec(server.stderr()) ?? []
    await use(server.url, token)
    await server.end()

    const places = { stdout: server.stdout(), files: JSON.stringify(filesIn(folder.path)) }
    expect(token).not.toBe('')
    expect(Object.entries(places).filter(([, text]) => text.includes(token.slice('plst_'.length)))).toEqual([])
    expect(server.stderr().match(/^ +plst_/gm)).toHaveLength(1)
  })
})
