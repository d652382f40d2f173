import { HIDDEN, type Requests, type Row } from './requests.ts'

const HOST = 'a `Host` that no host can have, an absolute target of HTTP with any host and user'
const HOSTS = 'a comma and a space in a `Host`'
const TYPE = 'a comma and a space in quotes in a `Content-Type`'
const EXPECT = '`Expect: 100-continue` without a valid token, or with HTTP/1.0'
const ASTERISK = 'the target `*`'
const PATH = 'dot segments, percent-encoded ones included, and `\\` for `/` in a path'
const NO_URL = 'characters that no URL has, and fragments, in a target'
const METHOD = 'a method that the runtime does not know'
const VERSION = 'a version other than 1.0 and 1.1, like 1.2'
const REQUEST_LINE = 'a request line with further white space, NUL, a bare LF or CR, or a malformed version'
const EMPTY_LINES = 'empty lines before a request'
const LARGE_HEAD = 'a head of more than 16 KiB or 198 lines'

const EXPECTS = 'Expect: 100-continue\r\n'
const HEAD_BYTES_MAX = 16_384
const HEAD_LINES_MAX = 198

/** RFC 9112 §2.2 and §5, RFC 9110 §5.5. */
export const headers = ({ get, head, sized, ofStranger }: Requests): Row[] => [
  ...[
    ['a folded line (obs-fold)', 'X: a\r\n b\r\n'],
    ['a line that is folded with a tab', 'X: a\r\n\tb\r\n'],
    ['a folded length', 'Content-Length:\r\n 5\r\n'],
    ['a folded coding', 'Transfer-Encoding:\r\n chunked\r\n'],
    ['a space before a colon', 'X : a\r\n'],
    ['a space before the colon of a length', 'Content-Length : 5\r\n'],
    ['a space before the colon of a coding', 'Transfer-Encoding : chunked\r\n'],
    ['a space in a name', 'X Y: a\r\n'],
    ['a parenthesis in a name', 'X(: a\r\n'],
    ['a letter beyond ASCII in a name', 'X\u00e9: a\r\n'],
    ['NUL in a name', 'X\0: a\r\n'],
    ['no name', ': a\r\n'],
    ['no colon', 'X\r\n'],
    ['NUL in a value', 'X: a\0b\r\n'],
    ['a control character in a value', 'X: a\x01b\r\n'],
    ['a bare LF in a value', 'X: a\nContent-Length: 5\r\n'],
    ['a bare CR in a value', 'X: a\rContent-Length: 5\r\n'],
    ['two CR before LF', 'X: a\r\r\n'],
  ].map(([name = '', lines]): Row => [name, get(lines) + HIDDEN, '400']),
  ['a folded first line', get().replace('\r\n', '\r\n '), '400'],
  ['a folded token', get().replace('Bearer ', 'Bearer\r\n '), '400'],
  ['NUL behind the token', get().replace('\r\n\r\n', '\0\r\n\r\n'), '400'],
  ['a bare LF for the empty line', get().replace('\r\n\r\n', '\r\n\n'), '400'],
  ['no value', get('X:\r\n'), '200 next'],
  ['white space around a value', get('X: \t a \t \r\n'), '200 next'],
  ['a letter beyond ASCII in a value', get('X: \u00e9\r\n'), '200 next'],
  ['no Host', 'GET /healthz HTTP/1.1\r\n\r\n', '400'],
  ['two Host lines', get('Host: a\r\n'), '40005 next'],
  ['two hosts in one line', 'GET /healthz HTTP/1.1\r\nHost: a, b\r\n\r\n', '40005 next', HOSTS],
  ['a comma in a Host', 'GET /healthz HTTP/1.1\r\nHost: a,b\r\n\r\n', '200 next'],
  ['a comma in a Content-Type', sized('Content-Length: #\r\n').replace('/json', '/json; x="a,b"'), '200 next'],
  ['a comma and a space in it', sized('Content-Length: #\r\n').replace('/json', '/json; x="a, b"'), '41501 next', TYPE],
  ['a Host with a space', 'GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n', '200 next', HOST],
  ['an offer of HTTP/2', get('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n'), '200 next'],
  ['an offer of a web socket', get('Connection: Upgrade\r\nUpgrade: websocket\r\n'), '200 next'],
  ['the wish to close', get('Connection: close\r\n'), '200'],
  ['another expectation', get('Expect: the worst\r\n'), '200 next'],
  ['Expect: 100-continue', sized(`${EXPECTS}Content-Length: #\r\n`), '100 200 next'],
  ['Expect: 100-continue without a body', get(EXPECTS), '100 200 next'],
  ['Expect: 100-continue of a stranger', ofStranger(`Content-Length: 2\r\n${EXPECTS}`, '{}'), '100 40101 next', EXPECT],
  ['Expect: 100-continue with HTTP/1.0', head('GET /plants HTTP/1.0', EXPECTS), '100 200', EXPECT],
]

/** RFC 9112 §3.2, RFC 9110 §4.2.3. */
export const targets = ({ get, head, delete: del }: Requests): Row[] => [
  ['absolute form', get('', 'http://elsewhere/plants?limit=0'), '200 next'],
  ['absolute form of a path that there is not', get('', 'http://elsewhere/nothing/plants'), '40401 next'],
  ['absolute form without a path', get('', 'http://elsewhere'), '40401 next'],
  ['absolute form in capitals', get('', 'HTTP://elsewhere/plants?limit=0'), '200 next'],
  ['absolute form with https', get('', 'https://elsewhere/plants?limit=0'), '200 next', HOST],
  ['absolute form with a user', get('', 'http://u:p@elsewhere/plants?limit=0'), '200 next', HOST],
  ['absolute form without a host', get('', 'http:///plants?limit=0'), '200 next', HOST],
  ['absolute form without a Host line', 'GET http://a/healthz HTTP/1.1\r\n\r\n', '400'],
  ['absolute form of another scheme', get('', 'ftp://elsewhere/plants'), '400'],
  ['asterisk form', head('OPTIONS * HTTP/1.1'), '400', ASTERISK],
  ['asterisk form with GET', head('GET * HTTP/1.1'), '400'],
  ['authority form', head('CONNECT example.com:443 HTTP/1.1'), '40401'],
  ...['plants?limit=0', '', ' /plants?limit=0'].map((target): Row => [`"${target}"`, get('', target), '400']),
  ['no target', head('GET HTTP/1.1'), '400'],
  ['a space in the target', get('', '/plants?limit= 0'), '505', REQUEST_LINE],
  ['NUL in the target', get('', '/plants?limit=0\0'), '505', REQUEST_LINE],
  ['tabs for spaces', get().replace(/^GET (\S+) /, 'GET\t$1\t'), '505', REQUEST_LINE],
  ...['"', '<', '{', '|', '^', '`', '\u00e9'].map(
    (character): Row => [`${character} in the query`, get('', `/plants?limit=0&x=${character}`), '200 next', NO_URL],
  ),
  ['a fragment', get('', '/healthz#x'), '40401 next', NO_URL],
  ['a fragment behind a query', get('', '/plants?limit=0#x'), '40003 next', NO_URL],
  ...['/x/../plants', '/./plants', '/%2e/plants', '/x/%2E%2e/plants', '/../plants', '/plants/x/..\\..\\'].map(
    (path): Row => [path, get('', `${path.replace(/\\$/, '\\plants')}?limit=0`), '200 next', PATH],
  ),
  ...['/plants/..', '/plants/%2e%2e', '/plants\\', '/\\plants'].map(
    (path): Row => [path, get('', path), '40401 next', PATH],
  ),
  ...['//plants', '//x/plants', '/Plants', '/%70lants', '/plants%2F..'].map(
    (path): Row => [path, get('', path), '40401 next'],
  ),
  ...['%30', '%2D7', '0?x', '0?0'].map((id): Row => [`DELETE /plants/${id}`, del(`/plants/${id}`), '40402 next']),
  ...['1%2F2', '..%2fplants', '%2530', '%', '%3', '%zz', '%C3%28', '%00', '0%00', '0;x', '%5c0', '+1', '\u00b9'].map(
    (id): Row => [`DELETE /plants/${id}`, del(`/plants/${id}`), '40004 next'],
  ),
]

/** RFC 9110 §9. */
export const methods = ({ head }: Requests): Row[] => [
  ['CONNECT', head('CONNECT /plants HTTP/1.1'), '40501'],
  ...['TRACE', 'PUT', 'PROPFIND', 'PURGE', 'M-SEARCH', 'QUERY'].map(
    (method): Row => [method, head(`${method} /plants HTTP/1.1`), '40501 next'],
  ),
  ['HEAD', head('HEAD /plants?limit=0 HTTP/1.1'), '200 next'],
  ['OPTIONS', head('OPTIONS /plants HTTP/1.1'), '204 next'],
  ...['FOO', 'get', 'Get', 'GETS', 'X', 'A'.repeat(100)].map(
    (method): Row => [`the method ${method.slice(0, 9)}`, head(`${method} /plants HTTP/1.1`), '', METHOD],
  ),
  ...['GE T', 'G@T', '', ' GET'].map(
    (method): Row => [`the method "${method}"`, head(`${method} /plants HTTP/1.1`), '400'],
  ),
  ['NUL in the method', head('G\0T /plants HTTP/1.1'), '505', REQUEST_LINE],
]

/** RFC 9112 §2.3, §9.3 and §2.2. */
export const versions = ({ get, head }: Requests): Row[] => [
  ['HTTP/1.0', head('GET /plants HTTP/1.0'), '200'],
  ['HTTP/1.0 without Host', 'GET /healthz HTTP/1.0\r\n\r\n', '200'],
  ['HTTP/1.0 that wishes to go on', head('GET /plants HTTP/1.0', 'Connection: keep-alive\r\n'), '200'],
  ['HTTP/1.0 with chunks', `${head('POST /plants HTTP/1.0', 'Transfer-Encoding: chunked\r\n')}0\r\n\r\n`, '400'],
  ['HTTP/1.2', head('GET /plants HTTP/1.2'), '505', VERSION],
  ...['HTTP/0.9', 'HTTP/2.0'].map((version): Row => [version, head(`GET /plants ${version}`), '505']),
  ...['HTTP/1.10', 'HTTP/01.1', 'HTTP/1', 'http/1.1', 'HTTPS/1.1', 'HTTP/1.1 '].map(
    (version): Row => [`the version "${version}"`, head(`GET /plants ${version}`), '505', REQUEST_LINE],
  ),
  ['no version', 'GET /plants\r\n\r\n', '505', REQUEST_LINE],
  ['no request at all', 'hello\r\n\r\n', '400'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '400'],
  ['a bare LF behind the request line', get().replace('\r\n', '\n'), '505', REQUEST_LINE],
  ['a bare CR behind the request line', get().replace('\r\n', '\r'), '505', REQUEST_LINE],
  ['bare LF everywhere', get().replaceAll('\r\n', '\n'), '505', REQUEST_LINE],
  ['an empty line before the request', `\r\n${get()}`, '400', EMPTY_LINES],
  ['an empty line between requests', `${get()}\r\n${get()}`, '200 400', EMPTY_LINES],
  ['two requests at once', get() + get(), '200 200 next'],
]

/** RFC 6585 §5. */
export const sizes = ({ get, head }: Requests): Row[] => {
  const line = (bytes: number) => `X: ${'a'.repeat(bytes - 'X: \r\n'.length)}\r\n`
  const lines = (count: number) => 'X: a\r\n'.repeat(count)
  const own = get().split('\r\n').length - 3
  return [
    ['a head of 16 KiB', get(line(HEAD_BYTES_MAX - get().length)), '200 next'],
    ['a head of 16 KiB and a byte', get(line(HEAD_BYTES_MAX - get().length + 1)), '431', LARGE_HEAD],
    ['198 lines', get(lines(HEAD_LINES_MAX - own)), '200 next'],
    ['199 lines', get(lines(HEAD_LINES_MAX - own + 1)), '431', LARGE_HEAD],
    ['20 KB in one line', get(line(20_000)), '431', LARGE_HEAD],
    ['20 KB in 100 lines', get(line(200).repeat(100)), '431', LARGE_HEAD],
    ['20 KB of target', head(`GET /plants?limit=0&x=${'a'.repeat(20_000)} HTTP/1.1`), '431', LARGE_HEAD],
  ]
}
