import { constants, createHmac, KeyObject, sign as signBytes } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, exportSPKI, type JWTPayload } from 'jose'
import { AUDIENCE, type IssuerKey, makeKey, startIssuer } from '../../support/issuer.ts'

type Part = string | Uint8Array | object
type Arena = Awaited<ReturnType<typeof openArena>>
/** What is tried, the token, and the code of the answer. */
type Try = readonly [what: string, make: () => string | Promise<string>, code?: number]
/** Tokens by the section of RFC 8725 or of another RFC. */
type Tries = (arena: Arena) => Readonly<Record<string, readonly Try[]>>

const [DAY_S, LEEWAY_S] = [86_400, 60]
const seconds = (offset: number): number => Math.floor(Date.now() / 1000) + offset

const encode = (part: Part): string =>
  Buffer.from(typeof part === 'string' || part instanceof Uint8Array ? part : JSON.stringify(part)).toString(
    'base64url',
  )

/** An issuer with keys of all kinds, the keys of an attacker, and ways to write tokens that no library would write. */
export async function openArena() {
  const ec = await makeKey('ES256', 'ec')
  const rsa = await makeKey('RS256', 'rsa')
  const ed = await makeKey('EdDSA', 'ed')
  const ed25519 = await makeKey('Ed25519', 'ed25519')
  const encrypting = await makeKey('ES256', 'encrypting', { use: 'enc' })
  const silent = await makeKey('ES256', 'silent', { key_ops: ['encrypt'] })
  const mislabelled = await makeKey('ES256', 'mislabelled', { alg: 'ES384' })
  const weak = await makeWeakKey()
  const pss = { ...rsa, jwk: { ...rsa.jwk, kid: 'pss', alg: 'PS256' } }
  const keys = { ec, rsa, pss, ed, ed25519, encrypting, silent, mislabelled, weak }
  const issuer = await startIssuer({ keys: Object.values(keys) })
  const { claims, token } = issuer
  return {
    ...keys,
    issuer,
    mallory: await makeKey('ES256', 'ec'),
    spki: await exportSPKI(rsa.publicKey),
    thumbprint: await calculateJwkThumbprint(ec.jwk),
    claims,
    token,
    /** Signs any texts, by default the usual claims by the elliptic curve key of the issuer. */
    async forge(header: Part = {}, payload: Part = claims(), { privateKey }: IssuerKey = ec): Promise<string> {
      const isText = typeof header === 'string' || header instanceof Uint8Array
      const head = encode(isText ? header : { alg: 'ES256', kid: 'ec', typ: 'at+jwt', ...header })
      const data = `${head}.${encode(payload)}`
      const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
      const signature = await crypto.subtle.sign(algorithm, privateKey as CryptoKey, Buffer.from(data))
      return `${data}.${encode(new Uint8Array(signature))}`
    },
    /** Signs by an algorithm or in a form that the key is not for. */
    signAs(alg: 'ES256' | 'PS256' | 'RS256' | 'RS512', { privateKey, kid }: IssuerKey, named = kid): string {
      const data = `${encode({ alg, kid: named })}.${encode(claims())}`
      const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
      const key = { key: KeyObject.from(privateKey as CryptoKey), ...(alg === 'PS256' && padding) }
      return `${data}.${signBytes(`sha${alg.slice(2)}`, Buffer.from(data), key).toString('base64url')}`
    },
    hmac(secret: string | Buffer, bits = 256): string {
      const data = `${encode({ alg: `HS${bits}`, kid: 'rsa', typ: 'at+jwt' })}.${encode(claims())}`
      return `${data}.${createHmac(`sha${bits}`, secret).update(data).digest('base64url')}`
    },
    /** The usual claims as JSON, with others that a text writes behind them. */
    withText(text: string, left: readonly string[] = []): string {
      const usual = Object.fromEntries(Object.entries(claims()).filter(([name]) => !left.includes(name)))
      return `${JSON.stringify(usual).slice(0, -1)},${text}}`
    },
    /** A right token of this length. Base64url has no text whose length is 1 more than a multiple of 4, so the header varies, too. */
    async ofLength(length: number): Promise<string> {
      const empty = (await token({ x: '' })).length
      for (let pad = Math.floor(((length - empty) * 3) / 4) - 12; ; pad++) {
        for (const y of ['', '1', '12', '123', '1234']) {
          const text = await token({ x: 'x'.repeat(pad) }, { y })
          if (text.length === length) return text
        }
      }
    },
  }
}

/** An RSA key of 1024 bits. */
async function makeWeakKey(): Promise<IssuerKey> {
  const exponent = new Uint8Array([1, 0, 1])
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 1024, publicExponent: exponent }
  const pair = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const names = { alg: 'RS256', kid: 'weak' }
  return { ...names, ...pair, jwk: { ...(await exportJWK(pair.publicKey)), ...names, use: 'sig' } }
}

const algorithmAttacks: Tries = ({ forge, hmac, signAs, token, claims, ...keys }) => ({
  '8725 §2.1': [
    ['HS256 with the public key in PEM', () => hmac(keys.spki)],
    ['HS256 with the public key in PEM without its last line feed', () => hmac(keys.spki.trim())],
    ['HS256 with the JWK', () => hmac(JSON.stringify(keys.rsa.jwk))],
    ['HS512 with the modulus', () => hmac(Buffer.from(`${keys.rsa.jwk.n}`, 'base64url'), 512)],
    ['HS256 with an empty secret', () => hmac('')],
  ],
  '8725 §3.1': [
    ...['none', 'None', 'NONE', 'nOnE', 'none ', ''].map((alg): Try => {
      const text = () => `${encode({ alg, typ: 'at+jwt' })}.${encode(claims())}.`
      return [`alg ${JSON.stringify(alg)} without a signature`, text]
    }),
    ['alg none with a signature', () => forge({ alg: 'none' })],
    ['no alg', () => forge('{"kid":"ec","typ":"at+jwt"}')],
    ['alg as a list', () => forge({ alg: ['ES256'] })],
    ['alg in lower case', () => forge({ alg: 'es256' })],
    ['RS256 for the kid of an elliptic curve', () => token({}, { kid: 'ec' }, keys.rsa)],
    ['PS256 with a key for RS256', () => signAs('PS256', keys.rsa)],
    ['RS512 with a key for RS256', () => signAs('RS512', keys.rsa)],
    ['ES256 with a key for ES384', () => token({}, {}, keys.mislabelled)],
    ['EdDSA with a key for Ed25519', () => token({}, { alg: 'EdDSA' }, keys.ed25519)],
    ['a key whose use is enc', () => token({}, {}, keys.encrypting)],
    ['a key that may not verify', () => token({}, {}, keys.silent)],
  ],
  '8725 §3.5': [['an RSA key of 1024 bits', () => signAs('RS256', keys.weak)]],
})

const signatureAttacks: Tries = ({ forge, signAs, token, ec, mallory }) => {
  const changed = async (change: (signature: Buffer) => Uint8Array) =>
    (await token()).replace(/[^.]+$/, (signature) => encode(change(Buffer.from(signature, 'base64url'))))
  const another = async () => (await token()).replace(/.*\./, '')
  return {
    '8725 §3.3': [
      ['the key of an attacker with the same kid', () => token({}, {}, mallory)],
      ['a signature with one bit changed', () => changed((bytes) => bytes.with(9, (bytes[9] ?? 0) ^ 1))],
      ['no signature', async () => (await token()).replace(/[^.]+$/, '')],
      [
        'the signature of another token',
        async () => (await token({ sub: 'admin' })).replace(/[^.]+$/, await another()),
      ],
      ['another header', async () => (await token()).replace(/^[^.]+/, encode({ alg: 'ES256', kid: 'ec' }))],
      ['a JWT in a JWT', async () => forge({ cty: 'JWT' }, await token())],
      ['a JWT in a JSON text in a JWT', async () => forge({}, JSON.stringify(await token()))],
    ],
    '8725 §3.4': [
      ['a signature of zeros', () => changed(() => new Uint8Array(64))],
      ['a signature in DER', () => signAs('ES256', ec)],
      ['a signature with one more byte', () => changed((bytes) => Buffer.concat([bytes, Buffer.from([0])]))],
    ],
  }
}

const formAttacks: Tries = ({ forge, token, claims, withText, ofLength }) => ({
  '7515 §7.1': [
    ['two parts', async () => (await token()).replace(/\.[^.]+$/, '')],
    ['100 signatures behind each other', async () => `${await token()}${`.${'A'.repeat(43)}`.repeat(99)}`],
  ],
  '7516 §7.1': [['a JWE of five parts', async () => `${await token()}.a.b`]],
  '7515 §7.2': [
    [
      '100 signatures in JSON',
      () => {
        const signatures = Array(100).fill({ protected: encode({ alg: 'ES256' }), signature: 'AA' })
        return encode({ payload: encode(claims()), signatures })
      },
    ],
  ],
  '7515 §2': [
    ['padding', async () => `${await token()}==`],
    [
      'the other alphabet',
      async () => (await forge({}, withText('"x":"???>>>~~~"'))).replace(/_/g, '/').replace(/-/g, '+'),
    ],
    ['a percent-encoded dot', async () => (await token()).replace('.', '%2E')],
  ],
  'the contract': [
    ['8193 bytes', () => ofLength(8193)],
    ['a header of 16 KB', () => ofLength(12_000)],
  ],
  '8725 §3.7': [
    ['a header that is not UTF-8', () => forge(Buffer.from('{"alg":"ES256","kid":"ec","x":"\xff"}', 'latin1'))],
    ['claims that are not UTF-8', () => forge({}, Buffer.from(withText('"sub":"\xff"'), 'latin1'))],
    ['claims in UTF-16', () => forge({}, Buffer.from(withText('"x":1'), 'utf16le'))],
  ],
  '7519 §7.2': [
    ['a header that is a list', () => forge('["ES256"]')],
    ['a header that is no JSON', () => forge('{"alg":"ES256"')],
    ['claims that are a list', () => forge({}, [claims()])],
    ['claims that are null', () => forge({}, 'null')],
    ['claims nested 4000 levels deep', () => forge({}, '['.repeat(4000))],
  ],
  '7515 §4.1.11': [
    ['a crit that nobody knows', () => forge({ crit: ['x'], x: 1 })],
    ['a crit of a claim', () => forge({ crit: ['exp'], exp: seconds(60) })],
    ['an empty crit', () => forge({ crit: [] })],
  ],
  '7797 §6': [false, true].map((b64): Try => [`b64 ${b64} in a crit`, () => forge({ crit: ['b64'], b64 })]),
})

const keyAttacks: Tries = ({ forge, token, issuer, mallory, thumbprint }) => ({
  '8725 §3.10': [
    ...['../../../../dev/null', "x' or '1'='1", 'http://127.0.0.1/', 'ec\0', 'EC', '__proto__', 'constructor', '']
      .concat('k'.repeat(4000))
      .map((kid): Try => [`the kid ${kid.slice(0, 30)}`, () => token({}, { kid })]),
    ...[7, null, ['ec'], { ec: 1 }].map((kid): Try => [`the kid ${JSON.stringify(kid)}`, () => forge({ kid })]),
    ['an embedded key', () => forge({ jwk: mallory.jwk, kid: undefined }, undefined, mallory)],
    ['an embedded key with its thumbprint', () => forge({ jwk: mallory.jwk, kid: thumbprint }, undefined, mallory)],
    ['the address of keys', () => forge({ jku: `${issuer.origin}/evil` }, undefined, mallory)],
    ['the address of a certificate', () => forge({ x5u: `${issuer.origin}/evil` }, undefined, mallory)],
    ['a certificate', () => forge({ x5c: ['MIIB'] }, undefined, mallory)],
  ],
})

const claimAttacks: Tries = ({ forge, token, claims, withText, issuer: { issuer } }) => {
  /** The usual claims with each of these values, signed by the issuer. */
  const each = (name: string, values: readonly unknown[]): readonly Try[] =>
    values.map((value) => [
      value === undefined ? `no ${name}` : `${name} ${JSON.stringify(value)}`,
      () => token({ [name]: value }),
    ])
  const behind = (text: string, left?: readonly string[]) => () => forge({}, withText(text, left))
  return {
    '8725 §3.8': [
      ...each('iss', [undefined, 'https://evil.example.org', '', ['x'], null, `${issuer}/`, issuer.toUpperCase()]),
      ['an iss that is a list of the right one', () => forge({}, { ...claims(), iss: [issuer] })],
      ...each('sub', [undefined, '', 7, true, ['ada'], { a: 1 }, null]),
      ['a sub with an unpaired surrogate', behind('"sub":"\\ud800"', ['sub'])],
    ],
    '8725 §3.9': each('aud', [undefined, `${AUDIENCE}/`, 'PLANTS', [], ['x', 7], 7, null, { 0: AUDIENCE }]),
    '7519 §4.1.4': [
      ...each('exp', [undefined, '1', '2099-01-01', null, true, [4_000_000_000], 0, -1, -1e300]),
      ['an exp beyond all numbers', behind('"exp":1e999', ['exp'])],
      ['an exp 61 seconds ago', () => token({ exp: seconds(-LEEWAY_S - 1) })],
    ],
    '7519 §4.1.5': each('nbf', [seconds(3600), '1']),
    '7519 §4.1.6': [
      ['an iat in an hour', () => token({ iat: seconds(3600) })],
      ['an iat as text', behind('"iat":"1"')],
    ],
    '8725 §3.11': [
      ...['logout+jwt', 'dpop+jwt', 'secevent+jwt', 'application/json', 'JWTx', ''].map(
        (typ): Try => [`the typ ${JSON.stringify(typ)}`, () => token({}, { typ })],
      ),
      ['a typ that is a list', () => forge({ typ: ['JWT'] })],
    ],
    '7519 §4': [
      ['a second iss, which is another one', behind('"iss":"https://evil.example.org"')],
      ['a second exp, which is over', behind('"exp":1')],
      ['claims in __proto__', () => forge({}, `{"__proto__":${JSON.stringify(claims())}}`)],
    ],
    '7515 §4': [['a second alg, which is none', () => forge('{"alg":"ES256","kid":"ec","typ":"JWT","alg":"none"}')]],
    '6749 §3.3': [
      ['a scope in __proto__', behind('"__proto__":{"scope":"plants:write"}', ['scope']), 40301],
      ['a scope whose words are parted by line feeds', () => token({ scope: 'email\nplants:write' }), 40301],
    ],
  }
}

const oddities: Tries = ({ forge, token, signAs, ofLength, withText, rsa, ed, ed25519, mallory }) => {
  const sent = (what: string, claims: JWTPayload): Try => [what, () => token(claims)]
  return {
    '7518 §3.3': [['RS256', () => token({}, {}, rsa)]],
    '7518 §3.5': [['PS256', () => signAs('PS256', rsa, 'pss')]],
    '8037 §3.1': [['EdDSA', () => token({}, {}, ed)]],
    '9864 §2.2': [['Ed25519', () => token({}, {}, ed25519)]],
    'the contract': [['8192 bytes', () => ofLength(8192)]],
    '9068 §2.1': ['JWT', 'jwt', 'AT+JWT', 'application/at+jwt', 'application/jwt', undefined].map(
      (typ): Try => [`the typ ${typ}`, () => token({}, { typ })],
    ),
    '7519 §4.1.2': [
      sent('a sub that looks like SQL', { sub: "x'; drop table users; --" }),
      sent('a sub with NUL and emoji', { sub: 'a\0🌱' }),
    ],
    '7519 §4.1.3': [sent('a list of audiences', { aud: ['x', AUDIENCE] })],
    '7519 §4.1.4': [
      sent('an exp 30 seconds ago', { exp: seconds(-LEEWAY_S / 2) }),
      sent('an exp in 10^300 seconds', { exp: 1e300 }),
      sent('an exp with a fraction', { exp: seconds(60) + 0.5 }),
    ],
    '7519 §4.1.5': [sent('an nbf and an iat in 30 seconds', { nbf: seconds(30), iat: seconds(30) })],
    '7519 §4.1.6': [sent('an iat years ago', { iat: seconds(-1000 * DAY_S) })],
    '7519 §4': [['a second sub', () => forge({}, withText('"sub":"bob"'))]],
    '7515 §4.1': [
      ['addresses of other keys', () => forge({ jku: 'https://evil.example.org', x5u: 'x', jwk: mallory.jwk })],
    ],
  }
}

const listed = (arena: Arena, all: readonly Tries[]) =>
  all.flatMap((triesOf) =>
    Object.entries(triesOf(arena)).flatMap(([section, tries]) =>
      tries.map(([what, make, code = 40102]) => ({ section, what, make, code })),
    ),
  )

/** All attacks, with the code that each is answered with. */
export const attacksOn = (arena: Arena) =>
  listed(arena, [algorithmAttacks, signatureAttacks, formAttacks, keyAttacks, claimAttacks])

/** What looks odd and is right: each is answered 200. */
export const odditiesOf = (arena: Arena) => listed(arena, [oddities])
