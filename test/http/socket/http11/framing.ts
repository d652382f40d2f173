import { CHUNKED, HIDDEN, LAST_CHUNK, type Requests, type Row } from './requests.ts'

const TRAILERS = 'trailers behind a chunked body'
const LARGE_LENGTH = 'a length of 2^53 or more, an extension of a chunk of more than 16 KiB'
const EXTENSIONS = 'a malformed extension of a chunk'
const SPACED_EXTENSIONS = 'white space in an extension of a chunk'
const LATE_BREAK = 'a body that turns out to be malformed after its request was answered'

/** RFC 9112 §6: the server refuses a message of ambiguous length, and reads nothing behind it. */
export const lengths = ({ sized, coded, post }: Requests): Row[] => [
  ['one length', sized('Content-Length: #\r\n'), '200 next'],
  ['two equal lengths', sized('Content-Length: #\r\nContent-Length: #\r\n'), '200 next'],
  ['two different lengths', sized('Content-Length: 5\r\nContent-Length: #\r\n'), '400'],
  ['two equal lengths in one line', sized('Content-Length: #, #\r\n'), '400'],
  ...['+#', '-#', '0x#', '#.0', '# 0', '#x', '1e1', '"#"', '', '18446744073709551616'].map(
    (value): Row => [`the length ${value}`, sized(`Content-Length: ${value}\r\n`), '400'],
  ),
  ['a length of 2^53', sized('Content-Length: 9007199254740992\r\n'), '413', LARGE_LENGTH],
  ['a length of nearly 2^64', sized('Content-Length: 18446744073709551615\r\n'), '400', LARGE_LENGTH],
  ['no length, and a body', sized(''), '40001 400'],
  ['no length, and no body', post('', ''), '40001 next'],
  ['a length and chunks', post(`Content-Length: 5\r\n${CHUNKED}`, LAST_CHUNK + HIDDEN), '400'],
  ['chunks and a length', post(`${CHUNKED}Content-Length: 5\r\n`, LAST_CHUNK + HIDDEN), '400'],
  ['a length and the coding identity', sized('Content-Length: #\r\nTransfer-Encoding: identity\r\n'), '400'],
  ['the coding chunked', coded(CHUNKED), '200 next'],
  ['the coding chunked in capitals behind a tab', coded('Transfer-Encoding:\tCHUNKED\r\n'), '200 next'],
  ...['gzip, chunked', 'chunked, gzip', 'chunked, chunked', 'gzip', '"chunked"', 'chunked;a=b', '\vchunked', ''].map(
    (value): Row => [`the coding ${JSON.stringify(value)}`, coded(`Transfer-Encoding: ${value}\r\n`), '400'],
  ),
  ['the coding chunked twice', coded(CHUNKED + CHUNKED), '400'],
  ['two codings', coded(`Transfer-Encoding: identity\r\n${CHUNKED}`), '400'],
]

/** RFC 9112 §7.1. */
export const chunks = ({ chunked }: Requests): Row[] => [
  ['a size with leading zeros', chunked(`00S\r\nP\r\n${LAST_CHUNK}`), '200 next'],
  ['a size in capitals', chunked(`S\r\nP\r\n${LAST_CHUNK}`).replace(/\r\n[0-9a-f]+\r\n/, upperCase), '200 next'],
  ['extensions', chunked('S;a=b;c="d"\r\nP\r\n0;e\r\n\r\n'), '200 next'],
  ...['', ';', '=b', 'a=', 'a;', 'a="', 'a="\\', 'a="b"c', 'a=b=c', 'a(b', 'a=\x7f', '\u00e9'].map(
    (extension): Row => [
      `the extension ${JSON.stringify(extension)}`,
      chunked(`S;${extension}\r\nP\r\n${LAST_CHUNK}`),
      '200 next',
      EXTENSIONS,
    ],
  ),
  ['a malformed extension of the last chunk', chunked('S\r\nP\r\n0;="\r\n\r\n'), '200 next', EXTENSIONS],
  ...[' ;a', '\t;a', '; a', ';a =b', ';a= b', ';a="b c"'].map(
    (extension): Row => [
      `the extension ${JSON.stringify(extension)}`,
      chunked(`S${extension}\r\nP\r\n${LAST_CHUNK}`),
      '400',
      SPACED_EXTENSIONS,
    ],
  ),
  ...['zz\r\n', '\r\n', '-S\r\n', '+S\r\n', '0xS\r\n', '100000000000000S\r\n', ' S\r\n', 'S \r\n', 'S\n', 'S\r']
    .concat(['S;a\n', 'S;a\rb\r\n', 'S;a=\0\r\n'])
    .map((line): Row => [`the line ${JSON.stringify(line)}`, chunked(`${line}P\r\n${LAST_CHUNK}`), '400']),
  ['an extension of 20 KB', chunked(`S;${'a'.repeat(20_000)}\r\nP\r\n${LAST_CHUNK}`), '413', LARGE_LENGTH],
  ...['S\r\nP\n', 'S\r\nP', 'S\r\nPxx', '5\r\nP\r\n'].map(
    (chunk): Row => [`the chunk ${JSON.stringify(chunk)}`, chunked(chunk + LAST_CHUNK), '400'],
  ),
]

/** RFC 9112 §7.1.2. The runtime takes the last chunk for the end of the body, and then refuses the bytes behind it. */
export const trailers = ({ chunked }: Requests): Row[] => [
  ['a bare LF behind the last chunk', chunked('S\r\nP\r\n0\r\n\n'), '400'],
  ['letters behind the last chunk', chunked('S\r\nP\r\n0\r\nxx'), '400'],
  ['a request behind the last chunk', chunked(`S\r\nP\r\n0\r\n${HIDDEN}`), '400', TRAILERS],
  ['a trailer', chunked('S\r\nP\r\n0\r\nX: y\r\n\r\n'), '400', TRAILERS],
  ['a trailer that goes over into a request', chunked(`S\r\nP\r\n0\r\nX: y\r\n${HIDDEN}`), '400', TRAILERS],
]

/** Bodies that the server does not read: the next request begins where they end. */
export const unreadBodies = ({ get, head, post, ofStranger }: Requests): Row[] => [
  ['a body of GET with a length', get(`Content-Length: ${HIDDEN.length}\r\n`) + HIDDEN, '200 next'],
  ['a body of GET in chunks', `${get(CHUNKED)}5\r\nhello\r\n${LAST_CHUNK}`, '200 next'],
  ['a body of DELETE', `${head('DELETE /plants/0 HTTP/1.1', 'Content-Length: 5\r\n')}hello`, '40402 next'],
  ['a body for nobody', `${head('POST /nothing HTTP/1.1', 'Content-Length: 5\r\n')}hello`, '40401 next'],
  ['a body of a stranger', ofStranger(`Content-Length: ${HIDDEN.length}\r\n`, HIDDEN), '40101 next'],
  ['a body over the limit', post('Content-Length: 65537\r\n', HIDDEN.padEnd(65_537)), '41301 next'],
  ['chunks over the limit', post(CHUNKED, `10001\r\n${HIDDEN.padEnd(65_537)}\r\n${LAST_CHUNK}`), '41301 next'],
  ['chunks of a stranger', ofStranger(CHUNKED, `5\r\nhello\r\n${LAST_CHUNK}`), '40101 next'],
  ['bad chunks of a stranger', ofStranger(CHUNKED, `zz\r\n${HIDDEN}`), '40101 400', LATE_BREAK],
  ['a trailer of a stranger', ofStranger(CHUNKED, `0\r\nX: y\r\n${HIDDEN}`), '40101 400', LATE_BREAK],
]

const upperCase = (text: string): string => text.toUpperCase()
