import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { orUndefined } from '../../src/domain/error.ts'
import { parseJson } from '../../src/domain/new-plant.ts'
import { hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { exchange } from '../support/raw-connection.ts'
import { filled, isAsPrinted, testTranscripts } from '../support/transcript.ts'
import { type Service, startService } from './support/service.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

/**
 *     # A list has a tag, which a client can send back.
 *     $ serve {"listMax":2}
 *     me> POST /plants {"id":1,"name":"Fern"}
 *     200 {"name":"Fern"}
 *     me> GET /plants
 *     200 [{"name":"Fern"}]
 *       ETag: {etag1}
 *       Link:
 *     me> GET /plants
 *       If-None-Match: {etag1}
 *     me> HEAD /plants
 *       If-None-Match: W/{etag1}
 *     304
 *
 * Each test has an empty service of its own, maybe with options. A request begins with whose token it has (`tokensOf`), and is
 * followed by lines of its head. It has the usual ones besides, unless a line like `- Host` leaves one out. All requests
 * before an answer have that answer: its status, its body, and the named headers. A header without a value must be absent.
 * `{me}` is a text of `tokensOf`, and `{x0a}` a byte.
 */
const serviceOf = (translate: (request: string) => string = (request) => request) => ({
  asked: /(?:\w+> .*\n(?: {2}.*\n)*)+/,
  async open(opening: string) {
    const [transport] = SOCKET_TRANSPORTS
    if (transport === undefined) throw new Error('unreachable')
    const service = await startService(transport, JSON.parse(/^\$ serve (.*)$/m.exec(opening)?.[1] ?? '{}'))
    const known = await tokensOf(service)
    return {
      known,
      async answer(asked: string, printed: string) {
        const { status, headers, body } = await exchange(service.port, bytesOf(translate(asked), known))
        const named = [...printed.matchAll(/^ +([\w-]+):/gm)].map(
          ([, name = '']) => `  ${name}: ${headers.get(name) ?? ''}`,
        )
        // What a create answers with 200, a put of the same plant answers with 201.
        const shown = status === 201 && translate(asked) !== asked ? 200 : status
        const lines = [`${shown} ${Buffer.from(body, 'latin1')}`, ...named]
        return lines.map((line) => `${line.trimEnd()}\n`).join('')
      },
      [Symbol.asyncDispose]: service[Symbol.asyncDispose],
    }
  },
})
const SERVICE = serviceOf()

/** A create as a put of the same plant. Without an id that can be read, it is a put of plant 1. */
function asPut(request: string): string {
  const body = /^\w+> POST \/plants (.*)$/m.exec(request)?.[1] ?? ''
  const parsed = orUndefined(() => (parseJson(Buffer.from(body)) as { readonly id?: unknown } | null)?.id)
  const id = typeof parsed === 'bigint' ? parsed : (/"id":([1-9]\d*)/.exec(body)?.[1] ?? 1)
  return request.replace('> POST /plants', `> PUT /plants/${id}`)
}

const YEAR_10000_MS = Date.parse('9999-12-31T23:59:59.999Z') + 1

/**
 * A write token of user `me`, a read token of `me`, write tokens of user `you` with and without an end, and tokens that give no access.
 * `nobody` has none.
 */
async function tokensOf({ store, token: me, createToken }: Service): Promise<Map<string, string>> {
  const tokens = {
    reader: await createToken({ scope: 'read' }),
    you: await createToken({ user: 'you' }),
    expired: await createToken({ expiresAtMs: Date.now() - 1 }),
    revoked: await createToken(),
    blocked: await createToken({ user: 'blocked', scope: 'read' }),
    ending: await createToken({ user: 'you', expiresAtMs: YEAR_10000_MS - 1 }),
    lasting: await createToken({ user: 'you', expiresAtMs: YEAR_10000_MS }),
  }
  await store.revokeTokens({ id: tokens.revoked.id }, Date.now())
  await store.setUserBlock('blocked', Date.now())
  const texts = Object.entries(tokens).map(([name, { text }]) => [name, text] as const)
  const unknown = tokenText(new Uint8Array(TOKEN_RANDOM_BYTES).fill(7))
  return new Map([['me', me], ['unknown', unknown], ['hash', hashToken(me).toHex()], ...texts])
}

/** The bytes of a request. */
function bytesOf(request: string, known: ReadonlyMap<string, string>): Buffer {
  const [line = '', ...lines] = request
    .replace(/\n+$/, '')
    .split('\n')
    .map((each) => each.replace(/^ {2}/, ''))
  const [, who = '', method, target, version = 'HTTP/1.1', text = ''] =
    /^(\w+)> (\S+) (\S*)(?: (HTTP\/\S+))?(?: (.*))?$/.exec(line) ?? []
  const body = toBytes(filled(text, known))
  const token = known.get(who)
  const usual = {
    Host: 'localhost',
    Connection: 'close',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(text !== '' && { 'Content-Type': 'application/json', 'Content-Length': String(body.length) }),
  }
  const isGiven = (name: string) => lines.some((each) => new RegExp(`^(?:- ${name}$|${name}:)`, 'i').test(each))
  const head = [
    `${method} ${target} ${version}`,
    ...Object.entries(usual).flatMap(([name, value]) => (isGiven(name) ? [] : [`${name}: ${value}`])),
    ...lines.filter((each) => !each.startsWith('- ')),
  ]
  return Buffer.concat([toBytes(filled(`${head.join('\r\n')}\r\n\r\n`, known)), body])
}

/** Text in UTF-8, and bytes as they are. */
const toBytes = (text: string): Buffer =>
  Buffer.concat(
    text
      .split(/(\{x[0-9a-f]{2}\})/)
      .map((part, index) => (index % 2 === 0 ? Buffer.from(part) : Buffer.from(part.slice(2, 4), 'hex'))),
  )

const FOLDER = join(import.meta.dir, 'transcripts')
testTranscripts(FOLDER, SERVICE)
describe('as a put', () => testTranscripts(FOLDER, { ...serviceOf(asPut), files: ['bodies.txt'] }))

// test/cli/commands.test.ts has what all transcripts share.
describe('a transcript of requests', () => {
  test.each([
    'me> GET /plants\nyou> GET /plants\n  Accept: a\n200 []\n  Content-Type: application/json\n  Link:\n',
    'me> GET /plants?limit=1\n200 []\n  ETag: {etag1}\n\nme> GET /plants?limit=1\n  If-None-Match: {etag1}\n304\n',
    '$ serve {"quotaPlants":0}\nme> POST /plants {"id":1,"name":"{3*a}{x62}"}\n403 {"error":40302,{text}\n',
  ])('passes if all is answered as it says: %j', async (text) => {
    expect(await isAsPrinted(text, SERVICE)).toBe(true)
  })

  test.each([
    ['another status', 'me> GET /plants\n404 []\n'],
    ['another body', 'me> GET /plants\n200 [1]\n'],
    ['another header', 'me> GET /plants\n200 []\n  Content-Type: text/plain\n'],
    ['a header too many', 'me> GET /plants\n200 []\n  Content-Type:\n'],
    ['an answer to one of several requests', 'me> GET /plants\nnobody> GET /plants\n200 []\n'],
  ])('fails if a request has %s', async (_, text) => {
    expect(await isAsPrinted(text, SERVICE)).toBe(false)
  })
})
