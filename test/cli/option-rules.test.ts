import { describe, expect, test } from 'bun:test'
import { OPTIONS } from '../../src/config.ts'
import { AppError } from '../../src/domain/error.ts'
import { MISTYPED_URLS } from '../support/mistyped-urls.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const KIB = 1024
const LABEL_MAX = 200
const NAME_MAX = 64

interface OptionRule {
  readonly takes: readonly (readonly [string, unknown])[]
  readonly refuses: readonly string[]
}

/** Where servers can be. */
const ADDRESSES: OptionRule = {
  takes: [
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['0.0.0.0:65535', { host: '0.0.0.0', port: 65535 }],
    ['localhost:3000', { host: 'localhost', port: 3000 }],
    ['[::1]:3000', { host: '::1', port: 3000 }],
    ['[::]:3000', { host: '::', port: 3000 }],
    ['unix:/run/plantstore.sock', { socketPath: '/run/plantstore.sock' }],
    ['unix:relative.sock', { socketPath: 'relative.sock' }],
  ],
  refuses: ['', '3000', ':3000', '127.0.0.1', '127.0.0.1:', '127.0.0.1:65536', '127.0.0.1:-1', '127.0.0.1:3000x']
    .concat(['::1:3000', '[::1]', '[::1:3000', 'a b:3000', 'http://localhost:3000', 'unix:', '127.0.0.1:0x10'])
    .concat(['[localhost]:3000', '[.]:3000']),
}

/** What each option with a value makes of texts, at its limits and one past them. */
const RULES = {
  listen: ADDRESSES,
  database: {
    takes: [
      ['plantstore.db', 'plantstore.db'],
      ['/var/lib/plants and more.db', '/var/lib/plants and more.db'],
      ['me@home/env=prod/10:00.db', 'me@home/env=prod/10:00.db'],
      ...[
        'postgres://me@host/plants',
        'postgresql://me:p%40ss@host:5433/plants?sslmode=require',
        'postgres://me@[::1]:5433/plants?sslmode=verify-ca',
        'postgres://me@%2Frun%2Fpostgresql/plants',
        'postgres://me@host/plants?sslmode=verify-full&sslrootcert=/etc/ca.pem',
      ].map((url): [string, string] => [url, url]),
    ],
    refuses: ['', ':memory:', 'a\0b', 'file:///plants.db', 'mysql://me@host/plants']
      .concat(['postgres://', 'postgres://host/plants', 'postgres://me@host', 'postgres://me@/plants'])
      .concat(['postgres://me@one,two/plants', 'postgres://me@one:1,two:2/plants', 'postgres://me@host:65536/plants'])
      .concat(['postgres://me:%@host/plants', 'postgres://me@host/plants#x', 'postgres://me@host/plants?sslmode=on'])
      .concat(['postgres://me@host/plants?options=-cfsync', 'postgres://me@host/plants?sslrootcert=/etc/ca.pem'])
      .concat(['postgres://me@host/plants?sslmode=require&sslrootcert=/etc/ca.pem']),
  },
  databasePasswordFile: { takes: [['/run/secrets/password', '/run/secrets/password']], refuses: [''] },
  databasePrepare: {
    takes: [
      ['true', 'true'],
      ['false', 'false'],
    ],
    refuses: ['', 'on', 'False'],
  },
  opsListen: ADDRESSES,
  durability: {
    takes: [
      ['full', 'full'],
      ['normal', 'normal'],
    ],
    refuses: ['', 'Full', 'off', 'extra', 'full '],
  },
  maxBody: {
    takes: [
      ['1B', 1],
      ['64KiB', 64 * KIB],
      ['1024MiB', KIB ** 3],
    ],
    refuses: [
      '',
      '0B',
      '64',
      '64KB',
      '64 KiB',
      '64kib',
      '-1B',
      '1.5MiB',
      '1025MiB',
      `${KIB ** 3 + 1}B`,
      '1e3B',
      '9GiB',
    ],
  },
  listMax: {
    takes: [
      ['1', 1],
      ['2147483647', 2147483647],
    ],
    refuses: ['', '0', '-1', '1.5', '1e3', '0x10', ' 5', '05', '2147483648'],
  },
  rateLimit: {
    takes: [
      ['1/s', { requests: 1, periodMs: 1000 }],
      ['100/m', { requests: 100, periodMs: MINUTE_MS }],
      ['1000000/h', { requests: 1_000_000, periodMs: 60 * MINUTE_MS }],
    ],
    refuses: ['', '100', '0/s', '-1/s', '1.5/s', '1e3/s', '01/s', '100/d', '100/S', '100 /s', '100/1s', '1000001/s'],
  },
  rateBurst: {
    takes: [
      ['1', 1],
      ['1000000', 1_000_000],
    ],
    refuses: ['', '0', '-1', '1.5', '1e3', '01', '5/s', '1000001'],
  },
  maxInFlight: {
    takes: [
      ['1', 1],
      ['2147483647', 2147483647],
    ],
    refuses: ['', '0', '-1', '1.5', '1e3', '05', '2147483648'],
  },
  idleTimeout: {
    takes: [
      ['5s', 5000],
      ['255s', 255_000],
      ['4m', 4 * MINUTE_MS],
    ],
    refuses: ['', '0s', '4s', '256s', '5m', '1h', '30', '5000ms'],
  },
  tlsCert: { takes: [['/etc/plants and more.crt', '/etc/plants and more.crt']], refuses: ['', 'a\0b'] },
  tlsKey: { takes: [['plants.key', 'plants.key']], refuses: ['', 'a\0b'] },
  drain: {
    takes: [
      ['0s', 0],
      ['8s', 8000],
      ['2m', 2 * MINUTE_MS],
      ['1h', 60 * MINUTE_MS],
      ['36500d', 36_500 * DAY_MS],
    ],
    refuses: ['', '8', 's', '8ms', '8 s', '-8s', '1.5s', '8S', '1w', '36501d', '1m30s', '1e3s'],
  },
  drainWait: { takes: [['2s', 2000]], refuses: ['', '2', '2sec'] },
  logLevel: {
    takes: [
      ['error', 'error'],
      ['warn', 'warn'],
      ['info', 'info'],
      ['debug', 'debug'],
    ],
    refuses: ['', 'trace', 'INFO', 'verbose', 'toString'],
  },
  logFormat: {
    takes: [
      ['json', 'json'],
      ['pretty', 'pretty'],
    ],
    refuses: ['', 'JSON', 'text', 'pretty '],
  },
  accessLog: {
    takes: [
      ['on', 'on'],
      ['off', 'off'],
    ],
    refuses: ['', 'true', 'yes', 'OFF'],
  },
  corsOrigin: {
    takes: [
      ['https://app.example.org', ['https://app.example.org']],
      ['http://localhost:5173,https://a_b.org:8443', ['http://localhost:5173', 'https://a_b.org:8443']],
      ['http://[::1]:8080', ['http://[::1]:8080']],
      ['https://xn--bcher-kva.example', ['https://xn--bcher-kva.example']],
    ],
    refuses: ['', '*', 'null', 'app.example.org', '//app.example.org', 'https://app.example.org/', 'https://a.org/b']
      .concat(['https://A.org', 'https://a.org:443', 'http://a.org:80', 'https://*.a.org', 'https://me@a.org'])
      .concat([
        'https://a.org,',
        ',https://a.org',
        'https://a.org, https://b.org',
        'https://bücher.example',
        'file://a',
      ]),
  },
  publicUrl: {
    takes: [
      ['https://plants.example.org', 'https://plants.example.org'],
      ['http://localhost:8080/api/', 'http://localhost:8080/api'],
    ],
    refuses: [
      '',
      'plants.example.org',
      'ftp://example.org',
      'https://me@example.org',
      'https://a.org/?b',
      'https://a.org/#b',
    ].concat(['javascript:alert(1)', 'https://:secret@example.org', 'https://a.org/?', ' https://a.org']),
  },
  user: {
    takes: [
      ['me', 'me'],
      ['A.b_c@d-9', 'A.b_c@d-9'],
      ['x'.repeat(NAME_MAX), 'x'.repeat(NAME_MAX)],
    ],
    refuses: ['', 'm e', 'mé', 'a/b', 'me\n', 'x'.repeat(NAME_MAX + 1)],
  },
  scope: {
    takes: [
      ['read', 'read'],
      ['write', 'write'],
    ],
    refuses: ['', 'admin', 'READ', 'read,write'],
  },
  expires: { takes: [['90d', 90 * DAY_MS]], refuses: ['', '90', 'never', '90D'] },
  label: {
    takes: [
      ['x', 'x'],
      ['gardener’s 🌱 laptop', 'gardener’s 🌱 laptop'],
      ['x'.repeat(LABEL_MAX), 'x'.repeat(LABEL_MAX)],
    ],
    refuses: ['', 'a\nb', 'a\u001bb', 'a\u007fb', 'a\ud800b', 'x'.repeat(LABEL_MAX + 1)],
  },
  dir: { takes: [['/var/backups/plants and more', '/var/backups/plants and more']], refuses: ['', 'a\0b'] },
  keep: {
    takes: [
      ['1', 1],
      ['14', 14],
    ],
    refuses: ['', '0', '-1', '1.5', '07', 'all'],
  },
  onConflict: {
    takes: [
      ['fail', 'fail'],
      ['skip', 'skip'],
      ['replace', 'replace'],
    ],
    refuses: ['', 'merge', 'SKIP', 'skip,replace'],
  },
  from: { takes: [['plants.db', 'plants.db']], refuses: ['', ':memory:', 'mysql://me@db/plants', 'postgres://db'] },
  fromPasswordFile: { takes: [['/run/secrets/db 1', '/run/secrets/db 1']], refuses: ['', 'a\0b'] },
  to: {
    takes: [['postgres://me@db/plants', 'postgres://me@db/plants']],
    refuses: ['', ':memory:', 'mysql://me@db/plants', 'postgres://db'],
  },
  toPasswordFile: { takes: [['/run/secrets/db 2', '/run/secrets/db 2']], refuses: ['', 'a\0b'] },
} as const satisfies Partial<Record<keyof typeof OPTIONS, OptionRule>>

const parse = (name: keyof typeof OPTIONS, text: string): unknown => {
  const option = OPTIONS[name]()
  return option.parseArg?.(text, undefined)
}

const refusal = (name: keyof typeof OPTIONS, text: string): string => {
  try {
    return `took ${JSON.stringify(text)} as ${JSON.stringify(parse(name, text))}`
  } catch (error) {
    if (error instanceof AppError && error.kind === 'misused') return error.message
    throw error
  }
}

describe.each(Object.entries(RULES))('the option %s', (key, { takes, refuses }) => {
  const name = key as keyof typeof RULES
  const { long, envVar } = OPTIONS[name]()

  test('takes what its rule allows', () => {
    const parsed = takes.map(([text]) => [text, parse(name, text)])

    expect(parsed).toEqual(takes.map(([text, value]) => [text, value]))
  })

  test.each(refuses)('refuses %p and names flag, variable and rule', (text) => {
    const message = refusal(name, text)

    expect(message).toStartWith(`${envVar === undefined ? long : `${long} (${envVar})`} must be `)
    expect(message).toMatch(/^[^\n]+\.$/)
  })
})

test.each(['database', 'from', 'to'] as const)('the option %s repeats nothing of a mistyped URL', (name) => {
  const rules = MISTYPED_URLS.map((text) => refusal(name, text))

  expect(rules.filter((rule) => !/^--\w+ (?:\(\w+\) )?must be /.test(rule))).toEqual([])
  expect(rules.filter((rule) => /Sesame|wrong/.test(rule))).toEqual([])
})

describe('the options', () => {
  test('have these flags, variables and defaults', () => {
    const declared = Object.values(OPTIONS).map((option) => {
      const { long, envVar, defaultValueDescription } = option()
      return [long, envVar, defaultValueDescription]
    })

    expect(declared).toEqual([
      ['--listen', 'PLANTSTORE_LISTEN', '127.0.0.1:3000'],
      ['--database', 'PLANTSTORE_DATABASE', 'plantstore.db'],
      ['--database-password-file', 'PLANTSTORE_DATABASE_PASSWORD_FILE', undefined],
      ['--database-prepare', 'PLANTSTORE_DATABASE_PREPARE', 'true'],
      ['--ops-listen', 'PLANTSTORE_OPS_LISTEN', undefined],
      ['--durability', 'PLANTSTORE_DURABILITY', 'full'],
      ['--first-token', 'PLANTSTORE_FIRST_TOKEN', undefined],
      ['--no-docs', 'PLANTSTORE_NO_DOCS', undefined],
      ['--max-body', 'PLANTSTORE_MAX_BODY', '64KiB'],
      ['--list-max', 'PLANTSTORE_LIST_MAX', undefined],
      ['--rate-limit', 'PLANTSTORE_RATE_LIMIT', undefined],
      ['--rate-burst', 'PLANTSTORE_RATE_BURST', undefined],
      ['--max-in-flight', 'PLANTSTORE_MAX_IN_FLIGHT', undefined],
      ['--idle-timeout', 'PLANTSTORE_IDLE_TIMEOUT', '75s'],
      ['--tls-cert', 'PLANTSTORE_TLS_CERT', undefined],
      ['--tls-key', 'PLANTSTORE_TLS_KEY', undefined],
      ['--drain', 'PLANTSTORE_DRAIN', '8s'],
      ['--drain-wait', 'PLANTSTORE_DRAIN_WAIT', '0s'],
      ['--log-level', 'PLANTSTORE_LOG_LEVEL', 'info'],
      ['--log-format', 'PLANTSTORE_LOG_FORMAT', undefined],
      ['--access-log', 'PLANTSTORE_ACCESS_LOG', 'on'],
      ['--cors-origin', 'PLANTSTORE_CORS_ORIGIN', undefined],
      ['--public-url', 'PLANTSTORE_PUBLIC_URL', undefined],
      ['--user', undefined, undefined],
      ['--scope', undefined, 'write'],
      ['--expires', undefined, undefined],
      ['--label', undefined, undefined],
      ['--dir', undefined, undefined],
      ['--keep', undefined, undefined],
      ['--force', undefined, undefined],
      ['--on-conflict', undefined, 'fail'],
      ['--atomic', undefined, undefined],
      ['--from', undefined, undefined],
      ['--from-password-file', undefined, undefined],
      ['--to', undefined, undefined],
      ['--to-password-file', undefined, undefined],
      ['--snapshot', undefined, undefined],
      ['--json', undefined, undefined],
      ['--yes', undefined, undefined],
    ])
  })

  test('have a rule here if they have a value', () => {
    const valued = Object.entries(OPTIONS).filter(([, option]) => option().required || option().optional)

    expect(Object.keys(RULES)).toEqual(valued.map(([name]) => name))
  })
})
