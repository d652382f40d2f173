import { constants, createHmac, generateKeyPairSync, KeyObject, sign as signBytes } from 'node:crypto'
import { calculateJwkThumbprint, exportSPKI, type JWK } from 'jose'
import { AUDIENCE, type IssuerKey, makeKey, startIssuer } from '../../support/issuer.ts'

/** Everything that the makers of attacks use. */
export type Arena = Awaited<ReturnType<typeof openArena>>

/** An issuer with keys of all kinds, and the keys of an attacker. */
export async function openArena() {
  const ec = await makeKey('ES256', 'ec')
  const rsa = await makeKey('RS256', 'rsa')
  const { jwk, ...ed } = await makeKey('EdDSA', 'ed')
  const encrypting = await makeKey('ES256', 'encrypting', { use: 'enc' })
  const silent = await makeKey('ES256', 'silent', { key_ops: ['encrypt'] })
  const mislabelled = await makeKey('ES256', 'mislabelled', { alg: 'ES384' })
  const weak = weakKey()
  const pss = { ...rsa, jwk: { ...rsa.jwk, kid: 'pss', alg: 'PS256' } }
  const issuer = await startIssuer({ keys: [ec, rsa, pss, { ...ed, jwk }, encrypting, silent, mislabelled, weak] })
  const mallory = await makeKey('ES256', 'ec')
  const spki = await exportSPKI(rsa.publicKey)
  const thumbprint = await calculateJwkThumbprint(ec.jwk)
  return { issuer, ec, rsa, ed: { ...ed, jwk }, encrypting, silent, mislabelled, weak, mallory, spki, thumbprint }
}

/** An RSA key of 1024 bits. */
function weakKey(): IssuerKey & { readonly object: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const jwk = { ...(publicKey.export({ format: 'jwk' }) as JWK), kid: 'weak', alg: 'RS256', use: 'sig' }
  return { alg: 'RS256', kid: 'weak', jwk, object: privateKey } as unknown as IssuerKey & { readonly object: KeyObject }
}

const encode = (part: string | Uint8Array | object): string =>
  Buffer.from(typeof part === 'string' || part instanceof Uint8Array ? part : JSON.stringify(part)).toString(
    'base64url',
  )

/** A JWS of texts that no library would write, signed by the elliptic curve key of the issuer or by another one. */
async function forge(
  { ec, issuer }: Arena,
  header: string | Uint8Array | object = {},
  payload: string | Uint8Array | object = issuer.claims(),
  key: CryptoKey = ec.privateKey as CryptoKey,
): Promise<string> {
  const isText = typeof header === 'string' || header instanceof Uint8Array
  const head = encode(isText ? header : { alg: 'ES256', kid: 'ec', typ: 'at+jwt', ...header })
  const data = `${head}.${encode(payload)}`
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key, Buffer.from(data))
  return `${data}.${encode(new Uint8Array(signature))}`
}

/** The usual claims as JSON, with others that a text writes behind them. */
const withText = ({ issuer }: Arena, claims: string, left: readonly string[] = []): string => {
  const usual = Object.fromEntries(Object.entries(issuer.claims()).filter(([name]) => !left.includes(name)))
  return `${JSON.stringify(usual).slice(0, -1)},${claims}}`
}

const unsigned = ({ issuer }: Arena, alg: unknown): string =>
  `${encode({ alg, typ: 'at+jwt' })}.${encode(issuer.claims())}.`

const hmac = ({ issuer }: Arena, secret: string | Buffer, bits = 256): string => {
  const data = `${encode({ alg: `HS${bits}`, kid: 'rsa', typ: 'at+jwt' })}.${encode(issuer.claims())}`
  return `${data}.${createHmac(`sha${bits}`, secret).update(data).digest('base64url')}`
}

const changeSignature = async (arena: Arena, change: (signature: Buffer) => Uint8Array): Promise<string> => {
  const [head, payload, signature = ''] = (await arena.issuer.token()).split('.')
  return `${head}.${payload}.${encode(change(Buffer.from(signature, 'base64url')))}`
}

const seconds = (offset: number): number => Math.floor(Date.now() / 1000) + offset
const [DAY_S, LEEWAY_S] = [86_400, 60]

/** An attack: the section of RFC 8725 or of another RFC, what it tries, the token, and the code of the answer. */
export type Attack = readonly [
  section: string,
  what: string,
  make: (arena: Arena) => string | Promise<string>,
  code?: number,
]

const ALGORITHM_ATTACKS: readonly Attack[] = [
  ...['none', 'None', 'NONE', 'nOnE', 'none ', ''].map(
    (alg): Attack => ['8725 §3.1', `alg ${JSON.stringify(alg)} without a signature`, (arena) => unsigned(arena, alg)],
  ),
  ['8725 §3.1', 'alg none with a signature', async (arena) => forge(arena, { alg: 'none' })],
  ['8725 §3.1', 'no alg', async (arena) => forge(arena, '{"kid":"ec","typ":"at+jwt"}')],
  ['8725 §3.1', 'alg as a list', async (arena) => forge(arena, { alg: ['ES256'] })],
  ['8725 §3.1', 'alg in lower case', async (arena) => forge(arena, { alg: 'es256' })],
  ['8725 §2.1', 'HS256 with the public key in PEM', (arena) => hmac(arena, arena.spki)],
  [
    '8725 §2.1',
    'HS256 with the public key in PEM without its last line feed',
    (arena) => hmac(arena, arena.spki.trim()),
  ],
  ['8725 §2.1', 'HS256 with the JWK', (arena) => hmac(arena, JSON.stringify(arena.rsa.jwk))],
  ['8725 §2.1', 'HS512 with the modulus', (arena) => hmac(arena, Buffer.from(`${arena.rsa.jwk.n}`, 'base64url'), 512)],
  ['8725 §2.1', 'HS256 with an empty secret', (arena) => hmac(arena, '')],
  ['8725 §3.1', 'RS256 for the kid of an elliptic curve', ({ issuer, rsa }) => issuer.token({}, { kid: 'ec' }, rsa)],
  ['8725 §3.1', 'PS256 with a key for RS256', ({ issuer, rsa }) => asRsa('PS256', issuer.claims(), rsa)],
  ['8725 §3.1', 'RS512 with a key for RS256', ({ issuer, rsa }) => asRsa('RS512', issuer.claims(), rsa)],
  ['8725 §3.1', 'ES256 with a key for ES384', ({ issuer, mislabelled }) => issuer.token({}, {}, mislabelled)],
  ['8725 §3.1', 'a key whose use is enc', ({ issuer, encrypting }) => issuer.token({}, {}, encrypting)],
  ['8725 §3.1', 'a key that may not verify', ({ issuer, silent }) => issuer.token({}, {}, silent)],
  ['8725 §3.5', 'an RSA key of 1024 bits', ({ issuer, weak }) => withWeakKey(issuer.claims(), weak)],
]

const SIGNATURE_ATTACKS: readonly Attack[] = [
  ['8725 §3.3', 'the key of an attacker with the same kid', ({ issuer, mallory }) => issuer.token({}, {}, mallory)],
  ['8725 §3.4', 'a signature of zeros', (arena) => changeSignature(arena, () => new Uint8Array(64))],
  ['8725 §3.4', 'a signature in DER', (arena) => derSignature(arena)],
  [
    '8725 §3.4',
    'a signature with one more byte',
    (arena) => changeSignature(arena, (s) => Buffer.concat([s, Buffer.from([0])])),
  ],
  [
    '8725 §3.3',
    'a signature with one bit changed',
    (arena) => changeSignature(arena, (s) => s.with(9, (s[9] ?? 0) ^ 1)),
  ],
  ['8725 §3.3', 'no signature', async ({ issuer }) => (await issuer.token()).replace(/[^.]+$/, '')],
  [
    '8725 §3.3',
    'the signature of another token',
    async ({ issuer }) => {
      const [mine = '', yours = ''] = [await issuer.token(), await issuer.token({ sub: 'admin' })]
      return `${yours.slice(0, yours.lastIndexOf('.'))}${mine.slice(mine.lastIndexOf('.'))}`
    },
  ],
  [
    '8725 §3.3',
    'another header',
    async (arena) => (await arena.issuer.token()).replace(/^[^.]+/, encode({ alg: 'ES256', kid: 'ec' })),
  ],
  ['8725 §3.3', 'a JWT in a JWT', async (arena) => forge(arena, { cty: 'JWT' }, await arena.issuer.token())],
  [
    '8725 §3.3',
    'a JWT in a JSON text in a JWT',
    async (arena) => forge(arena, {}, JSON.stringify(await arena.issuer.token())),
  ],
]

const FORM_ATTACKS: readonly Attack[] = [
  ['7515 §7.1', 'two parts', async ({ issuer }) => (await issuer.token()).replace(/\.[^.]+$/, '')],
  ['7516 §7.1', 'a JWE of five parts', async ({ issuer }) => `${await issuer.token()}.a.b`],
  [
    '7515 §7.2',
    '100 signatures in JSON',
    async (arena) =>
      encode({
        payload: encode(arena.issuer.claims()),
        signatures: Array(100).fill({ protected: encode({ alg: 'ES256' }), signature: 'AA' }),
      }),
  ],
  [
    '7515 §7.1',
    '100 signatures behind each other',
    async ({ issuer }) => `${await issuer.token()}${`.${'A'.repeat(43)}`.repeat(99)}`,
  ],
  ['7515 §2', 'padding', async ({ issuer }) => `${await issuer.token()}==`],
  [
    '7515 §2',
    'the other alphabet',
    async (arena) => (await forge(arena, {}, withText(arena, '"x":"???>>>~~~"'))).replace(/_/g, '/').replace(/-/g, '+'),
  ],
  ['7515 §2', 'a percent-encoded dot', async ({ issuer }) => (await issuer.token()).replace('.', '%2E')],
  ['the contract', '8193 bytes', async (arena) => ofLength(arena, 8193)],
  ['the contract', 'a header of 16 KB', async (arena) => ofLength(arena, 12_000)],
  [
    '8725 §3.7',
    'a header that is not UTF-8',
    async (arena) => forge(arena, Buffer.from('{"alg":"ES256","kid":"ec","x":"\xff"}', 'latin1')),
  ],
  [
    '8725 §3.7',
    'claims that are not UTF-8',
    async (arena) => forge(arena, {}, Buffer.from(withText(arena, '"sub":"\xff"'), 'latin1')),
  ],
  [
    '8725 §3.7',
    'claims in UTF-16',
    async (arena) => forge(arena, {}, Buffer.from(withText(arena, '"x":1'), 'utf16le')),
  ],
  ['7519 §7.2', 'a header that is a list', async (arena) => forge(arena, '["ES256"]')],
  ['7519 §7.2', 'a header that is no JSON', async (arena) => forge(arena, '{"alg":"ES256"')],
  ['7519 §7.2', 'claims that are a list', async (arena) => forge(arena, {}, [arena.issuer.claims()])],
  ['7519 §7.2', 'claims that are null', async (arena) => forge(arena, {}, 'null')],
  ['7519 §7.2', 'claims nested 4000 levels deep', async (arena) => forge(arena, {}, '['.repeat(4000))],
  ['7515 §4.1.11', 'a crit that nobody knows', async (arena) => forge(arena, { crit: ['x'], x: 1 })],
  ['7515 §4.1.11', 'a crit of a claim', async (arena) => forge(arena, { crit: ['exp'], exp: seconds(60) })],
  ['7515 §4.1.11', 'an empty crit', async (arena) => forge(arena, { crit: [] })],
  ['7797 §6', 'an unencoded payload', async (arena) => forge(arena, { crit: ['b64'], b64: false })],
  ['7797 §6', 'a payload that is said to be encoded', async (arena) => forge(arena, { crit: ['b64'], b64: true })],
]

const KEY_ATTACKS: readonly Attack[] = [
  ...[
    '../../../../dev/null',
    "x' or '1'='1",
    'http://127.0.0.1/',
    'ec\0',
    'EC',
    '__proto__',
    'constructor',
    '',
    'k'.repeat(4000),
  ].map((kid): Attack => ['8725 §3.10', `the kid ${kid.slice(0, 30)}`, ({ issuer }) => issuer.token({}, { kid })]),
  ...[7, null, ['ec'], { ec: 1 }].map(
    (kid): Attack => ['8725 §3.10', `the kid ${JSON.stringify(kid)}`, async (arena) => forge(arena, { kid })],
  ),
  [
    '8725 §3.10',
    'an embedded key',
    (arena) =>
      forge(arena, { jwk: arena.mallory.jwk, kid: undefined }, undefined, arena.mallory.privateKey as CryptoKey),
  ],
  [
    '8725 §3.10',
    'an embedded key with its thumbprint',
    (arena) =>
      forge(arena, { jwk: arena.mallory.jwk, kid: arena.thumbprint }, undefined, arena.mallory.privateKey as CryptoKey),
  ],
  [
    '8725 §3.10',
    'the address of keys',
    (arena) => forge(arena, { jku: `${arena.issuer.origin}/evil` }, undefined, arena.mallory.privateKey as CryptoKey),
  ],
  [
    '8725 §3.10',
    'the address of a certificate',
    (arena) => forge(arena, { x5u: `${arena.issuer.origin}/evil` }, undefined, arena.mallory.privateKey as CryptoKey),
  ],
  [
    '8725 §3.10',
    'a certificate',
    (arena) => forge(arena, { x5c: ['MIIB'] }, undefined, arena.mallory.privateKey as CryptoKey),
  ],
]

/** The usual claims with another value, signed by the issuer. */
const claim = (section: string, name: string, value: unknown): Attack => [
  section,
  value === undefined ? `no ${name}` : `${name} ${JSON.stringify(value)}`,
  ({ issuer }) => issuer.token({ [name]: value }),
]

const CLAIM_ATTACKS: readonly Attack[] = [
  ...[undefined, 'https://evil.example.org', '', ['x'], null].map((value) => claim('8725 §3.8', 'iss', value)),
  ['8725 §3.8', 'an iss with a slash at its end', ({ issuer }) => issuer.token({ iss: `${issuer.issuer}/` })],
  ['8725 §3.8', 'an iss in upper case', ({ issuer }) => issuer.token({ iss: issuer.issuer.toUpperCase() })],
  [
    '8725 §3.8',
    'an iss that is a list of the right one',
    async (arena) => forge(arena, {}, { ...arena.issuer.claims(), iss: [arena.issuer.issuer] }),
  ],
  ...[undefined, '', 'sub', 7, true, ['ada'], { a: 1 }, null]
    .filter((value) => value !== 'sub')
    .map((value) => claim('8725 §3.8', 'sub', value)),
  [
    '8725 §3.8',
    'a sub with an unpaired surrogate',
    (arena) => forge(arena, {}, withText(arena, '"sub":"\\ud800"', ['sub'])),
  ],
  ...[undefined, 'https://plants.example.org/', 'PLANTS', [], ['x', 7], 7, null].map((value) =>
    claim('8725 §3.9', 'aud', value),
  ),
  [
    '8725 §3.9',
    'the audience in an object',
    ({ issuer }) => issuer.token({ aud: { 0: AUDIENCE } as unknown as string }),
  ],
  ...['1', '2099-01-01', null, true, [4_000_000_000], 0, -1, -1e300].map((value) => claim('7519 §4.1.4', 'exp', value)),
  claim('7519 §4.1.4', 'exp', undefined),
  ['7519 §4.1.4', 'an exp beyond all numbers', (arena) => forge(arena, {}, withText(arena, '"exp":1e999', ['exp']))],
  ['7519 §4.1.4', 'an exp 61 seconds ago', ({ issuer }) => issuer.token({ exp: seconds(-LEEWAY_S - 1) })],
  ['7519 §4.1.5', 'an nbf in an hour', ({ issuer }) => issuer.token({ nbf: seconds(3600) })],
  ['7519 §4.1.5', 'an nbf as text', ({ issuer }) => issuer.token({ nbf: '1' as unknown as number })],
  ['7519 §4.1.6', 'an iat in an hour', ({ issuer }) => issuer.token({ iat: seconds(3600) })],
  ['7519 §4.1.6', 'an iat as text', (arena) => forge(arena, {}, withText(arena, '"iat":"1"'))],
  ...['logout+jwt', 'dpop+jwt', 'secevent+jwt', 'application/json', 'JWTx', ''].map(
    (typ): Attack => ['8725 §3.11', `the typ ${JSON.stringify(typ)}`, ({ issuer }) => issuer.token({}, { typ })],
  ),
  ['8725 §3.11', 'a typ that is a list', (arena) => forge(arena, { typ: ['JWT'] })],
  [
    '7519 §4',
    'a second iss, which is another one',
    (arena) => forge(arena, {}, withText(arena, '"iss":"https://evil.example.org"')),
  ],
  ['7519 §4', 'a second exp, which is over', (arena) => forge(arena, {}, withText(arena, '"exp":1'))],
  [
    '7515 §4',
    'a second alg, which is none',
    (arena) => forge(arena, '{"alg":"ES256","kid":"ec","typ":"JWT","alg":"none"}'),
  ],
  [
    '7519 §4',
    'claims in __proto__',
    (arena) => forge(arena, {}, `{"__proto__":${JSON.stringify(arena.issuer.claims())}}`),
  ],
  [
    '6749 §3.3',
    'a scope in __proto__',
    (arena) => forge(arena, {}, withText(arena, '"__proto__":{"scope":"plants:write"}', ['scope'])),
    40301,
  ],
  [
    '6749 §3.3',
    'a scope whose words are parted by line feeds',
    ({ issuer }) => issuer.token({ scope: 'email\nplants:write' }),
    40301,
  ],
]

/** All attacks. Each is 40102 unless it says another code. */
export const ATTACKS: readonly Attack[] = [
  ...ALGORITHM_ATTACKS,
  ...SIGNATURE_ATTACKS,
  ...FORM_ATTACKS,
  ...KEY_ATTACKS,
  ...CLAIM_ATTACKS,
]

/** What looks odd and is right: each is answered 200. */
export const ACCEPTED: readonly Attack[] = [
  ['7518 §3.3', 'RS256', ({ issuer, rsa }) => issuer.token({}, {}, rsa)],
  ['7518 §3.5', 'PS256', ({ issuer, rsa }) => asRsa('PS256', issuer.claims(), rsa, 'pss')],
  ['8037 §3.1', 'EdDSA', ({ issuer, ed }) => issuer.token({}, {}, ed)],
  ['the contract', '8192 bytes', (arena) => ofLength(arena, 8192)],
  ...['JWT', 'jwt', 'AT+JWT', 'application/at+jwt', 'application/jwt'].map(
    (typ): Attack => ['9068 §2.1', `the typ ${typ}`, ({ issuer }) => issuer.token({}, { typ })],
  ),
  ['7519 §5.1', 'no typ', ({ issuer }) => issuer.token({}, { typ: undefined })],
  ['7519 §4.1.3', 'a list of audiences', ({ issuer }) => issuer.token({ aud: ['x', AUDIENCE] })],
  ['7519 §4.1.4', 'an exp 30 seconds ago', ({ issuer }) => issuer.token({ exp: seconds(-LEEWAY_S / 2) })],
  ['7519 §4.1.4', 'an exp in 10^300 seconds', ({ issuer }) => issuer.token({ exp: 1e300 })],
  ['7519 §4.1.4', 'an exp with a fraction', ({ issuer }) => issuer.token({ exp: seconds(60) + 0.5 })],
  [
    '7519 §4.1.5',
    'an nbf and an iat in 30 seconds',
    ({ issuer }) => issuer.token({ nbf: seconds(30), iat: seconds(30) }),
  ],
  ['7519 §4.1.6', 'an iat years ago', ({ issuer }) => issuer.token({ iat: seconds(-1000 * DAY_S) })],
  ['7519 §4', 'a second sub', (arena) => forge(arena, {}, withText(arena, '"sub":"bob"'))],
  ['7519 §4.1.2', 'a sub that looks like SQL', ({ issuer }) => issuer.token({ sub: "x'; drop table users; --" })],
  ['7519 §4.1.2', 'a sub with NUL and emoji', ({ issuer }) => issuer.token({ sub: 'a\0🌱' })],
  [
    '7515 §4.1',
    'addresses of other keys beside a right signature',
    (arena) => forge(arena, { jku: 'https://evil.example.org', x5u: 'x', jwk: arena.mallory.jwk }),
  ],
]

/** A right token of this length. Base64url has no text whose length is 1 more than a multiple of 4, so the header varies, too. */
async function ofLength({ issuer }: Arena, length: number): Promise<string> {
  const empty = (await issuer.token({ x: '' })).length
  for (let pad = Math.floor(((length - empty) * 3) / 4) - 12; ; pad++) {
    for (const y of ['', '1', '12', '123', '1234']) {
      const token = await issuer.token({ x: 'x'.repeat(pad) }, { y })
      if (token.length === length) return token
    }
  }
}

/** Signs claims by RSA in ways that only the key `pss` allows, and for PS256 alone. */
async function asRsa(alg: 'PS256' | 'RS512', claims: object, { privateKey }: IssuerKey, kid = 'rsa'): Promise<string> {
  const data = `${encode({ alg, kid })}.${encode(claims)}`
  const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
  const key = { key: KeyObject.from(privateKey as CryptoKey), ...(alg === 'PS256' && padding) }
  return `${data}.${signBytes(`sha${alg.slice(2)}`, Buffer.from(data), key).toString('base64url')}`
}

const withWeakKey = (claims: object, { object }: ReturnType<typeof weakKey>) => {
  const data = `${encode({ alg: 'RS256', kid: 'weak' })}.${encode(claims)}`
  return `${data}.${signBytes('sha256', Buffer.from(data), object).toString('base64url')}`
}

const derSignature = ({ ec, issuer }: Arena): string => {
  const data = `${encode({ alg: 'ES256', kid: 'ec' })}.${encode(issuer.claims())}`
  return `${data}.${signBytes('sha256', Buffer.from(data), KeyObject.from(ec.privateKey as CryptoKey)).toString('base64url')}`
}
