import { hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../../src/domain/token.ts'
import { exchange } from '../../support/raw-connection.ts'
import { filled } from '../../support/transcript.ts'
import { type Service, startService } from './service.ts'
import type { Transport } from './transports.ts'

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
export const transcriptsOf = (transport: Transport, translate: (request: string) => string = (request) => request) => ({
  asked: /(?:\w+> .*\n(?: {2}.*\n)*)+/,
  async open(opening: string) {
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
