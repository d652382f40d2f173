import { expect, test } from 'bun:test'
import { LOG_LEVELS } from '../../src/config.ts'
import { TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { serve } from '../support/executable.ts'
import { makeDatabase } from './support/database.ts'
import { filesIn, OUTPUTS } from './support/outputs.ts'

const FINEST_LEVEL = LOG_LEVELS.at(-1) ?? ''
/** So many of its characters in a row are a part of a token. */
const PART_LENGTH = 12

/** Uses a token in every way that is right, and in those that somebody takes for right. Returns all that came back. */
async function use(url: string, token: string): Promise<string> {
  const own = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const bare = token.slice('plst_'.length)
  const paths = [token, token.replace('_', '%5F'), percentEncoded(token), bare, `plants?access_token=${token}`]
  const headers: Record<string, string>[] = [
    { cookie: `access_token=${token}` },
    { 'proxy-authorization': `Bearer ${token}` },
    { authorization: `Basic ${Buffer.from(`me:${token}`).toString('base64')}` },
    { authorization: token },
    { authorization: `Bearer ${token},` },
    { ...own, 'x-request-id': token },
    { ...own, 'if-none-match': `"${token}"` },
    { ...own, 'user-agent': token, referer: `http://x/?token=${token}` },
  ]
  const bodies = [`{"access_token":"${token}"}`, `{"id":"${token}","name":1}`, token]
  bodies.push(`{"id":2,"name":"Ivy","${token}":"${token}"}`)
  const requests: [path: string, init: RequestInit][] = [
    ['/plants', { method: 'POST', headers: own, body: '{"id":1,"name":"Fern"}' }],
    ['/plants', { method: 'POST', headers: own, body: '{"id":1,"name":"Fern"}' }],
    ['/plants', { headers: own }],
    ['/plants/1', { method: 'DELETE', headers: own }],
    ['/readyz', { headers: own }],
    [`/plants/${token}`, { method: 'DELETE', headers: own }],
    ...paths.map((path): [string, RequestInit] => [`/${path}`, {}]),
    ...['limit=1', 'limit=1', `limit=${token}`, `after=${token}`].map((query): [string, RequestInit] => [
      `/plants?${query}`,
      { headers: own },
    ]),
    ...headers.map((each): [string, RequestInit] => ['/plants', { headers: each }]),
    ...bodies.map((body): [string, RequestInit] => ['/plants', { method: 'POST', headers: own, body }]),
    ['/plants', { method: 'POST', headers: { ...own, 'content-type': `text/${token}` }, body: token }],
    ['/plants', { method: 'PUT', headers: own, body: token }],
  ]
  let answers = ''
  for (const [path, init] of requests) {
    const answer = await fetch(url + path, init)
    answers += `${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}\n`
  }
  return answers
}

const percentEncoded = (text: string) => Array.from(text, (c) => `%${c.charCodeAt(0).toString(16)}`).join('')

/** A token's text, each of its parts, and the forms in which programs write a text. */
function formsOf(token: string): string[] {
  const bytes = Buffer.from(token)
  const parts = Array.from({ length: token.length - PART_LENGTH + 1 }, (_, at) => token.slice(at, at + PART_LENGTH))
  // Base64 of what it is in, wherever in it: of the characters around it the ends tell something.
  const base64 = [0, 1, 2].map((before) =>
    Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .slice(4, -4)
      .replaceAll('=', ''),
  )
  const wide = Buffer.from(token, 'utf16le').toString('latin1')
  return [...parts, ...base64, bytes.toString('hex'), wide, percentEncoded(token), [...token].reverse().join('')]
}

/** The names of the texts that hold a token, in whatever form. */
const holdersOf = (token: string, texts: Readonly<Record<string, string>>): string[] =>
  Object.entries(texts)
    .filter(([, text]) => formsOf(token).some((form) => text.toLowerCase().includes(form.toLowerCase())))
    .map(([name]) => name)

test('the text of a token is only in the output of token create, while the token is used and after', async () => {
  using made = makeDatabase()
  const { folder, database } = made
  const created = await made.run('token', 'create', '--user', 'me', '--label', 'phone')
  const token = created.stdout.trim()
  await using server = await serve(database, ['--log-level', FINEST_LEVEL, '--metrics-listen', '127.0.0.1:0'])
  const answers = await use(server.url, token)
  const whileServing: Record<string, string> = {}
  for (const [name, read] of Object.entries(OUTPUTS)) {
    whileServing[name] = await read({ server, folder, database, answers })
  }
  const revoked = await made.feed(token, 'token', 'revoke', '-')
  await server.end()

  expect(created.stdout).toMatch(/^plst_[0-9A-Za-z]{49}\n$/)
  expect(revoked.exitCode).toBe(0)
  expect(answers).toMatch(/^200 .*\n409 .*\n200 .*\n204 /)
  expect(Object.entries(whileServing).filter(([, text]) => text === '')).toEqual([['stderr', '']])
  expect(whileServing.log).toContain('"path":"/plants"')
  const lines = server.stdout().trim().split('\n')
  expect(lines.length).toBeGreaterThan(30)
  expect(lines.filter((line) => /authorization|bearer|basic|cookie/i.test(line))).toEqual([])
  // All files are read, those that are there only while it runs as well.
  for (const name of ['', '-wal', '-shm']) expect(whileServing.files).toContain(`${database}${name}\n`)
  expect(holdersOf(token, whileServing)).toEqual([])
  const later = { created: created.stderr, revoked: revoked.stdout + revoked.stderr, files: filesIn(folder) }
  expect(holdersOf(token, { ...later, log: server.stdout(), stderr: server.stderr() })).toEqual([])
})

test('the text of a token would be found in whatever form', () => {
  const token = tokenText(new Uint8Array(TOKEN_RANDOM_BYTES).fill(7))
  const forms = [
    ...[token, token.slice(0, PART_LENGTH), token.slice(-PART_LENGTH), encodeURIComponent(token)],
    ...[`me:${token}`, `Bearer ${token}`, `${token}\n`].map((text) => Buffer.from(text).toString('base64')),
    Buffer.from(token).toString('hex').toUpperCase(),
  ]

  for (const form of forms)
    expect([form, holdersOf(token, { place: `before ${form} behind` })]).toEqual([form, ['place']])
})
