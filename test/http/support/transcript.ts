import { hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../../src/domain/token.ts'
import { exchange, joinChunks } from '../../support/raw-connection.ts'
import { type Service, startService } from './service.ts'
import { type ServiceOptions, SOCKET_TRANSPORTS } from './transports.ts'

/**
 * A test that reads as requests and their answers:
 *
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
 * before an answer have that answer: its status, its body, and the named headers, of which an empty one is not there.
 *
 * `{me}` is a text of `tokensOf`, `{x0a}` a byte, and `{9*ab}` repeats a text. In answers, `{etag}` is any text of `KINDS`, with
 * a number the same one wherever it stands in the test.
 */
export interface Transcript {
  readonly title: string
  readonly options: ServiceOptions
  readonly steps: readonly Step[]
}

interface Step {
  readonly requests: readonly string[]
  readonly answer: string
}

const KINDS: Readonly<Record<string, string>> = {
  etag: '"[!#-~]+"',
  seconds: '[1-9]\\d*',
  text: '.*',
  uuid: '[0-9a-f-]{36}',
}
const VARIABLE = /\{([a-z]+\d*)\}/g

/** The tests of a file, each of which begins with a title. */
export const readTranscripts = (text: string): readonly Transcript[] =>
  text
    .split(/^# /m)
    .slice(1)
    .map((section) => {
      const [, title = '', options = '{}', rest = ''] = /^(.*)\n(?:\$ serve (.*)\n)?([\s\S]*)$/.exec(section) ?? []
      const steps = rest.split(/^(?=\d{3}\b)/m)
      return {
        title,
        options: JSON.parse(options),
        // Behind each answer are the requests of the next one.
        steps: steps.slice(1).map((part, index) => ({
          requests: requestsIn(steps[index] ?? ''),
          answer: (part.split(/^(?=\w+> )/m)[0] ?? '').trim(),
        })),
      }
    })

const requestsIn = (text: string): readonly string[] => text.split(/^(?=\w+> )/m).filter((part) => /^\w+> /.test(part))

/** Sends the requests. Resolves to the answers that are expected, and to those that came; both are the same if all is well. */
export async function runTranscript({ options, steps }: Transcript) {
  const [transport] = SOCKET_TRANSPORTS
  if (transport === undefined) throw new Error('unreachable')
  await using service = await startService(transport, options)
  const known: Map<string, string> = await tokensOf(service)
  let [expected, actual] = ['', '']
  for (const { requests, answer } of steps) {
    for (const request of requests) {
      const { status, headers, body } = await exchange(service.port, bytesOf(request, known))
      const content = headers.get('transfer-encoding') === 'chunked' ? joinChunks(body) : body
      const named = [...answer.matchAll(/^ +([\w-]+):/gm)].map(
        ([, name = '']) => `\n  ${name}: ${headers.get(name) ?? ''}`,
      )
      const came =
        `${status} ${Buffer.from(content, 'latin1')}`.trimEnd() + named.map((line) => line.trimEnd()).join('')
      const found = patternOf(answer, known).exec(came)
      for (const [name, text] of Object.entries(found?.groups ?? {})) known.set(name, text)
      expected += `${request}${found === null ? filled(answer, known) : came}\n`
      actual += `${request}${came}\n`
    }
  }
  return { expected, actual }
}

/** A write token of user `me` and of user `you`, a read token of `me`, and tokens that give no access. `nobody` has none. */
async function tokensOf({ store, token: me, createToken }: Service) {
  const tokens = {
    reader: await createToken({ scope: 'read' }),
    you: await createToken({ user: 'you' }),
    expired: await createToken({ expiresAtMs: Date.now() - 1 }),
    revoked: await createToken(),
    blocked: await createToken({ user: 'blocked', scope: 'read' }),
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
    .trimEnd()
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

const repeated = (text: string): string =>
  text.replace(/\{(\d+)\*(\}|[^}]+)\}/g, (_, count, part) => part.repeat(Number(count)))

const filled = (text: string, known: ReadonlyMap<string, string>): string =>
  repeated(text).replace(VARIABLE, (variable, name) => known.get(name) ?? variable)

/** A pattern of an answer. It has a group for each variable with a number whose text is not known yet. */
function patternOf(answer: string, known: ReadonlyMap<string, string>): RegExp {
  const parts = repeated(answer)
    .split(/(\{[a-z]+\d*\})/)
    .map((part, index) => {
      const name = index % 2 === 0 ? '' : part.slice(1, -1)
      const pattern = KINDS[name.replace(/\d+$/, '')]
      const text = known.get(name)
      if (text !== undefined || pattern === undefined) return RegExp.escape(text ?? part)
      return /\d$/.test(name) ? `(?<${name}>${pattern})` : `(?:${pattern})`
    })
  return new RegExp(`^${parts.join('')}$`)
}
