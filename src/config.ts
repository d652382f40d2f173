// Tested in test/cli/option-rules.test.ts.
import { type InferOptions, Option } from '@commander-js/extra-typings'
import { CONFLICT_RULES } from './domain/plant.ts'
import { DURABILITIES, LIMIT_MAX } from './domain/store.ts'
import { SCOPES } from './domain/token.ts'
import * as values from './values.ts'
import { option, optionWithDefault } from './values.ts'

export const VARIABLE_PREFIX = 'PLANTSTORE_'

/** The levels of the log, from the most severe. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const

/** The settings that name the store and say how to open it. */
export const DATABASE_SETTINGS = settings('Database:', {
  database: optionWithDefault('--database <where>', values.database, 'plantstore.db').help(
    'The SQLite file, or postgres://USER@HOST/DATABASE. A missing file is made, and so are missing tables.',
  ),
  databasePasswordFile: option('--database-password-file <path>', values.path).help(
    'The file with the password of a PostgreSQL database.',
  ),
  databasePrepare: optionWithDefault('--database-prepare <state>', values.either('true', 'false'), 'true').help(
    'Say false if a pooler in transaction mode is in front of a PostgreSQL database.',
  ),
  durability: optionWithDefault('--durability <level>', values.oneOf(DURABILITIES), 'full').help(
    'When a write succeeds. Full: once it is on disk. Normal: before that, and a loss of power can lose the latest writes. Storage: as full, on a PostgreSQL server whose storage is durable with fsync = off.',
  ),
})

/** All options of `serve`. Their variables are named after the flags: `--max-body` is `PLANTSTORE_MAX_BODY`. */
export const SETTINGS = {
  ...DATABASE_SETTINGS,
  ...settings('Listening:', {
    listen: optionWithDefault('--listen <address>', values.address, '127.0.0.1:3000').help(
      'The address of the server: HOST:PORT or unix:/path. Port 0 picks a free port.',
    ),
    metricsListen: option('--metrics-listen <address>', values.address).help(
      'Serves /metrics for Prometheus at this address: HOST:PORT or unix:/path. It uses no TLS and asks for no token. Off by default.',
    ),
    threads: option('--threads <count>', values.count(64)).help(
      'How many threads answer requests. By default one less than the cores that the process may use, at least 1 and at most 8. A unix socket, --rate-limit, PostgreSQL and systems other than Linux have one.',
    ),
    tlsCert: option('--tls-cert <path>', values.path).help(
      'The certificate of a server that speaks TLS, and its intermediate certificates, in PEM.',
    ),
    tlsKey: option('--tls-key <path>', values.path).help('The private key of --tls-cert, in PEM, not encrypted.'),
    corsOrigin: option('--cors-origin <origins>', values.listOf(values.origin)).help(
      'Browsers may use the service from pages of these origins. Separate them by commas, or repeat the option. None by default.',
    ),
    publicUrl: option('--public-url <url>', values.url).help('The URL of the service that the OpenAPI document names.'),
    noDocs: new Option('--no-docs', 'Serves neither /openapi.json nor /docs.'),
    noPage: new Option('--no-page', 'Serves no page for browsers at /.'),
  }),
  ...settings('Limits:', {
    maxBody: optionWithDefault('--max-body <size>', values.size, '64KiB').help(
      'The largest body of a request: a number with B, KiB or MiB.',
    ),
    listMax: option('--list-max <count>', values.count(LIMIT_MAX)).help(
      'The most plants of an answer. Off by default.',
    ),
    quotaPlants: option('--quota-plants <count>', values.count(LIMIT_MAX, 0)).help(
      'The most plants of a user. The server refuses to create more. No limit by default.',
    ),
    rateLimit: option('--rate-limit <rate>', values.rate).help(
      'The most requests that this process takes from a token in a second, minute or hour, like 100/s. No limit by default.',
    ),
    // At least 5 s: our longest wait is shorter, and the runtime's timer has steps of 4 s. At most 255 s: its largest value.
    // By default 75 s: load balancers keep connections for 60 s, and must not send a request into a closed one.
    idleTimeout: optionWithDefault('--idle-timeout <duration>', values.duration('5s', '255s'), '75s').help(
      'How long a connection may be idle, and how long a body may take to arrive: 5s to 255s.',
    ),
  }),
  ...settings('Stopping:', {
    drain: optionWithDefault('--drain <duration>', values.duration('0s'), '8s').help(
      'How long the server may take to end after a signal: a number with s, m, h or d.',
    ),
    drainWait: optionWithDefault('--drain-wait <duration>', values.duration('0s'), '0s').help(
      'How long the server still takes new connections after a signal. This is a part of --drain.',
    ),
  }),
  ...settings('Logging:', {
    logLevel: optionWithDefault('--log-level <level>', values.oneOf(LOG_LEVELS), 'info').help(
      'The least severe lines that the server logs on stdout.',
    ),
    logFormat: option('--log-format <format>', values.oneOf(['json', 'pretty'] as const)).help(
      'json writes one object a line, pretty writes for people. By default pretty on a terminal and json elsewhere.',
    ),
    accessLog: optionWithDefault('--access-log [state]', values.either('on', 'off'), 'on')
      .help('Logs a line for each request, at level info.')
      .preset('on'),
    logAddresses: optionWithDefault('--log-addresses <state>', values.either('on', 'off'), 'on').help(
      'Logs the address and the agent of the client of each request.',
    ),
    trustedProxy: option('--trusted-proxy <cidr>', values.listOf(values.trustedProxy)).help(
      'Takes client addresses from the X-Forwarded-For of proxies in this network; unix trusts those at a unix socket. Separate networks by commas, or repeat the option. None by default.',
    ),
  }),
  ...settings('Tokens:', {
    jwtIssuer: option('--jwt-issuer <url>', values.issuer).help(
      'Accepts the JWTs of this identity provider, too. Together with --jwt-audience. Off by default.',
    ),
    jwtAudience: option('--jwt-audience <text>', values.text).help('The audience that a JWT must have.'),
    jwtKeys: option('--jwt-keys <path>', values.path).help(
      'A file with the keys of the identity provider as a JWKS, read every 10 minutes. By default the server fetches them.',
    ),
    jwtDefaultScope: option('--jwt-default-scope <scope>', values.oneOf(SCOPES)).help(
      `What a JWT without scopes may do: ${SCOPES.join(' or ')}. By default nothing.`,
    ),
    jwtClientId: option('--jwt-client-id <text>', values.text).help(
      'People sign in at the page with the identity provider, which knows the page by this client id, without a secret. Off by default.',
    ),
    jwtRequestParam: option('--jwt-request-param <name=value>', values.listOf(values.requestParameter)).help(
      'What the page also asks of the identity provider, like resource=https://plants.example.org. Separate several by commas, or repeat the option. By default scope=openid profile plants:write.',
    ),
    firstToken: new Option(
      '--first-token',
      'Makes a token for user me if the store has none, and prints it and the URLs of the server on stderr.',
    ),
  }),
}

/**
 * All options, each declared once: flag, help, parser and default. Help, validation, the types of the commands and the
 * table in docs/reference/cli.md follow from this. The options that are no settings say what a command does to data, which no
 * variable may change.
 */
export const OPTIONS = {
  ...SETTINGS,
  databaseOfServer: retold(
    SETTINGS.database,
    'The database of the server: a SQLite file, or postgres://USER@HOST/DATABASE. It must exist.',
  ),
  asked: retold(SETTINGS.listen, 'The address of the server: HOST:PORT or unix:/path.'),
  issuerOfSubject: retold(SETTINGS.jwtIssuer, 'The identity provider that knows --subject, as the server has it.'),
  ...settings('Database:', {
    databaseFile: optionWithDefault('--database <path>', values.database, 'plantstore.db').help('The SQLite file.'),
    restored: option('--database <path>', values.database).help(
      'The SQLite file that the server uses. It has no default, because restore replaces or makes it.',
    ),
  }),
  owner: option('--user <name>', values.newUserName).help('The user of the new token, whom the command may create.'),
  batch: new Option(
    '--batch',
    'Creates a token for each line on stdin: user [scope [expires] [label]]. The other options hold for lines without a value.',
  ),
  scope: optionWithDefault('--scope <scope>', values.oneOf(SCOPES), 'write').help('What the token may do.'),
  expires: option('--expires <duration>', values.duration('1s')).help(
    'When the token expires, like 90d. By default never.',
  ),
  newExpires: option('--expires <duration>', values.duration('1s')).help(
    'The new token expires after this time, like 90d. By default after the lifetime of the old token.',
  ),
  overlap: optionWithDefault('--overlap <duration>', values.duration('0s'), '24h').help(
    'How long the old token stays valid: a number with s, m, h or d. 0 revokes it at once.',
  ),
  label: option('--label <text>', values.label).help('A note on the purpose of the token.'),
  from: option('--from <where>', values.database)
    .help('The store to copy: a SQLite file, or postgres://USER@HOST/DATABASE.')
    .makeOptionMandatory(true),
  fromPasswordFile: option('--from-password-file <path>', values.path).help('The file with the password of --from.'),
  to: option('--to <where>', values.database)
    .help('The store to fill: a new SQLite file, or a PostgreSQL database without plants, tokens and users.')
    .makeOptionMandatory(true),
  toPasswordFile: option('--to-password-file <path>', values.path).help('The file with the password of --to.'),
  snapshot: new Option('--snapshot', 'Copies a store that servers use, as it is at this moment.'),
  tokensOf: option('--user <name>', values.userName).help('Only the tokens of this user.'),
  plantsOf: option('--user <name>', values.userName).help('Only the plants of this user.'),
  userOfLines: option('--user <name>', values.newUserName).help('The user of the lines that name none.'),
  subject: option('--subject <text>', values.text).help('The user whom --jwt-issuer knows by this subject.'),
  dir: option('--dir <path>', values.path).help('A directory for backups, whose names have the time in them.'),
  keep: option('--keep <count>', values.count(LIMIT_MAX)).help(
    'How many of the latest backups --dir keeps. All by default.',
  ),
  force: new Option('--force', 'Replaces a file that exists.'),
  onConflict: optionWithDefault('--on-conflict <rule>', values.oneOf(CONFLICT_RULES), 'fail').help(
    'If the user already has a plant with the id of a line. fail: import nothing. skip: keep the plant. replace: replace the plant.',
  ),
  csv: new Option('--csv', 'Prints CSV with a header line, for spreadsheets. Needs --user.'),
  maxLine: optionWithDefault('--max-line <size>', values.size, '385KiB').help(
    'The longest line of the input. Exported lines are never longer than six times the largest body of the server and 1 KiB.',
  ),
  atomic: new Option('--atomic', 'Imports all lines or none, in one transaction. Writes of servers wait for it.'),
  limit: option('--limit <count>', values.count(LIMIT_MAX)).help('At most this many. All by default.'),
  afterToken: option('--after <id>', values.count(Number.MAX_SAFE_INTEGER, 0)).help('Only tokens with a larger id.'),
  afterUser: option('--after <name>', values.userName).help('Only users after this name in the order of the list.'),
  wait: optionWithDefault('--wait <duration>', values.duration('0s'), '0s').help(
    'How long to ask again until the server is ready: a number with s, m, h or d.',
  ),
  json: new Option('--json', 'Prints JSON for programs: an object, or an array of objects for a list.'),
  yes: new Option('--yes', 'Confirms what cannot be undone.'),
} as const

export type Settings = Readonly<ValuesOf<keyof typeof SETTINGS>>

/** The values of options, as commander would infer them from a chain of `addOption`: a function of all takes what each takes. */
export type ValuesOf<Name extends keyof typeof OPTIONS, Each = (typeof OPTIONS)[Name]> = (
  Each extends Option<infer Usage, infer Preset, infer Default, infer Value, infer Mandatory, infer Choices>
    ? (values: InferOptions<Record<never, never>, Usage, Default, Value, Mandatory, Preset, Choices>) => void
    : never
) extends (values: infer All) => void
  ? All & Record<never, never>
  : never

/** A setting with another help, for commands to which it means less than to `serve`. */
function retold<T extends object>(setting: T, description: string): T {
  return Object.create(setting, { description: { value: description } })
}

/** Gives options their variables, and a heading in the help. */
function settings<T extends Readonly<Record<string, Option>>>(heading: string, options: T): T {
  for (const each of Object.values(options)) {
    each.env(VARIABLE_PREFIX + each.name().replaceAll('-', '_').toUpperCase()).helpGroup(heading)
  }
  return options
}
