import { type Command, Option } from 'commander'
import { AppError } from './domain/error.ts'
import { DURABILITIES } from './domain/store.ts'
import { SCOPES } from './domain/token.ts'
import { CONFLICT_RULES } from './domain/transfer.ts'
import { LOG_FORMATS, LOG_LEVELS } from './log.ts'
import {
  duration,
  oneOf,
  parseAddress,
  parseBurst,
  parseCount,
  parseDatabase,
  parseLabel,
  parseOrigin,
  parsePath,
  parseRate,
  parseSize,
  parseUrl,
  parseUserName,
  Rule,
} from './values.ts'

/**
 * Every option, declared once: flag, what it does, default and rule; help, validation and the README's table come from here.
 * Variables say where things are and how `serve` runs: those options are a `flag`, `valued` or `listed`, and the variable's name
 * follows from the flag (`--max-body` is `PLANTSTORE_MAX_BODY`). What a command does to data comes from its arguments alone.
 */
export const OPTIONS = {
  listen: () =>
    valued(
      '--listen <address>',
      'where the server is: HOST:PORT (port 0 picks one) or unix:/path',
      parseAddress,
      '127.0.0.1:3000',
    ),
  database: () =>
    valued(
      '--database <where>',
      'the SQLite file, or postgres://USER@HOST/DATABASE; serve and token create make what is missing',
      parseDatabase,
      'plantstore.db',
    ),
  databasePasswordFile: () =>
    valued('--database-password-file <path>', 'the file with the password of a PostgreSQL database', parsePath),
  databasePrepare: () =>
    valued(
      '--database-prepare <state>',
      'false where a PostgreSQL database is behind a pooler of transactions',
      oneOf(['true', 'false']),
      'true',
    ),
  opsListen: () =>
    valued(
      '--ops-listen <address>',
      'where /metrics is for Prometheus, in clear and without a token: HOST:PORT or unix:/path; nowhere if left out',
      parseAddress,
    ),
  durability: () =>
    valued(
      '--durability <what>',
      'what a success means: full, on disk; normal, a loss of power may take the latest writes',
      oneOf(DURABILITIES),
      'full',
    ),
  firstToken: () => flag('--first-token', 'where the store has no token, make one for user me and print it on stderr'),
  noDocs: () => flag('--no-docs', 'serve neither /openapi.json nor /docs'),
  maxBody: () =>
    valued('--max-body <size>', 'the largest body of a request: a number with B, KiB or MiB', parseSize, '64KiB'),
  listMax: () => valued('--list-max <count>', 'the most plants in one answer; no limit if left out', parseCount),
  rateLimit: () =>
    valued(
      '--rate-limit <rate>',
      'the most requests of a token in a second, minute or hour, like 100/s, to this process; no limit if left out',
      parseRate,
    ),
  rateBurst: () =>
    valued('--rate-burst <count>', 'how many more a token may make in ten such times; none if left out', parseBurst),
  maxInFlight: () =>
    valued(
      '--max-in-flight <count>',
      'the most requests under way of clients with a token, streamed lists included; no limit if left out',
      parseCount,
    ),
  idleTimeout: () =>
    valued(
      '--idle-timeout <duration>',
      'how long a body may take to arrive, and a connection to be idle: 5s to 255s',
      // From what no wait of ours exceeds, in steps of the runtime, to what it can count.
      duration('5s', '255s'),
      // Longer than balancers keep theirs, 60 s by default: they must not send a request into a closed connection.
      '75s',
    ),
  tlsCert: () =>
    valued(
      '--tls-cert <path>',
      "the server's certificate and those that vouch for it, in PEM: with --tls-key makes it speak TLS alone",
      parsePath,
    ),
  tlsKey: () => valued('--tls-key <path>', 'the private key of the certificate, in PEM, not encrypted', parsePath),
  drain: () =>
    valued(
      '--drain <duration>',
      'how long ending may take after a signal: a number with s, m, h or d',
      duration('0s'),
      '8s',
    ),
  drainWait: () =>
    valued('--drain-wait <duration>', 'how long, of --drain, new connections are still taken', duration('0s'), '0s'),
  logLevel: () =>
    valued('--log-level <level>', `what is logged on stdout: ${LOG_LEVELS.join(', ')}`, oneOf(LOG_LEVELS), 'info'),
  logFormat: () =>
    valued(
      '--log-format <format>',
      'json, an object a line; pretty, for people; if left out, pretty where stdout is a terminal, else json',
      oneOf(LOG_FORMATS),
    ),
  accessLog: () =>
    valued('--access-log [state]', 'a line per request, at level info: on or off', oneOf(['on', 'off']), 'on').preset(
      'on',
    ),
  corsOrigin: () =>
    listed(
      '--cors-origin <origins>',
      'of which origins pages in browsers may use the service, with commas between or repeated; of none if left out',
      parseOrigin,
    ),
  publicUrl: () => valued('--public-url <url>', 'where clients reach the service; for the documentation', parseUrl),
  user: () => argument('--user <name>', 'name of the user', parseUserName),
  scope: () => argument('--scope <scope>', `what the token may do: ${SCOPES.join(' or ')}`, oneOf(SCOPES), 'write'),
  expires: () =>
    argument('--expires <duration>', 'after what time the token expires, like 90d; never if left out', duration('1s')),
  label: () => argument('--label <text>', 'what the token is for', parseLabel),
  dir: () =>
    argument('--dir <path>', 'a directory in which each backup has a name of its own, with the time', parsePath),
  keep: () =>
    argument('--keep <count>', 'how many backups stay in --dir, the latest ones; all if left out', parseCount),
  force: () => new Option('--force', 'replace what is there'),
  onConflict: () =>
    argument(
      '--on-conflict <what>',
      'where a user has a plant with an id already: fail, import nothing; skip, leave it as it is; replace it',
      oneOf(CONFLICT_RULES),
      'fail',
    ),
  atomic: () => new Option('--atomic', 'import all or nothing, in one transaction: creates and deletes wait for it'),
  from: () => argument('--from <where>', 'the store that is copied, named as by --database', parseDatabase),
  fromPasswordFile: () =>
    argument('--from-password-file <path>', 'the file with the password of that database', parsePath),
  to: () =>
    argument('--to <where>', 'the store that it is copied into, which must be empty, or not there', parseDatabase),
  toPasswordFile: () => argument('--to-password-file <path>', 'the file with the password of that database', parsePath),
  snapshot: () => new Option('--snapshot', 'copy a store that servers use, as it is at this moment'),
  json: () => new Option('--json', 'print JSON for programs: an object, or an array of objects for a list'),
  yes: () => new Option('--yes', 'do it; there is no way back'),
} as const

/** Prefix of all variables. */
const VARIABLE_PREFIX = 'PLANTSTORE_'

/** The values of booleans in the environment. Commander takes any value, `false` included, for true. */
export function applyBooleanVariables(command: Command, env: Readonly<Record<string, string | undefined>>): void {
  for (const option of command.options) {
    const name = option.attributeName()
    if (
      option.required ||
      option.optional ||
      option.envVar === undefined ||
      command.getOptionValueSource(name) !== 'env'
    )
      continue
    const text = env[option.envVar] ?? ''
    if (text !== 'true' && text !== 'false') {
      command.error(`error: ${option.long} (${option.envVar}) must be true or false.`)
    }
    command.setOptionValueWithSource(name, (text === 'true') !== option.negate, 'env')
  }
}

/** Variables with our prefix that no option has, most likely misspelt. Those that Kubernetes sets are left out. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set(Object.values(OPTIONS).map((option) => option().envVar))
  return Object.keys(env).filter(
    (name) => name.startsWith(VARIABLE_PREFIX) && !known.has(name) && !KUBERNETES_VARIABLE.test(`${name}=${env[name]}`),
  )
}

/**
 * What Kubernetes sets in each container if a Service is called `plantstore`, or `plantstore-` and more
 * (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables). A user may set
 * `PLANTSTORE_PORT`, too, but not to a URL.
 */
const KUBERNETES_VARIABLE =
  /^\w+_(?:SERVICE_HOST=|SERVICE_PORT(?:_\w+)?=|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?=|PORT=(?:tcp|udp|sctp):)/

const variableOf = (flags: string): string =>
  VARIABLE_PREFIX + (flags.split(' ')[0] ?? '').slice('--'.length).replaceAll('-', '_').toUpperCase()

const withVariable = (option: Option): Option => option.env(variableOf(option.flags))

const flag = (flags: string, description: string) => withVariable(new Option(flags, description))

const valued = <T>(...declared: Parameters<typeof argument<T>>): Option => withVariable(argument<T>(...declared))

/** An option with a value, whose text `parse` turns into the value or refuses by returning the rule it breaks. */
function argument<T>(
  flags: string,
  description: string,
  parse: (text: string) => T | Rule,
  defaultText?: string,
): Option {
  const option = new Option(flags, description)
  const read = (text: string): T => readBy(parse, text, option)
  option.argParser(read)
  return defaultText === undefined ? option : option.default(read(defaultText), defaultText)
}

/** An option with several values, given with commas between them, or again. */
function listed<T>(flags: string, description: string, parse: (text: string) => T | Rule): Option {
  const option = withVariable(new Option(flags, description))
  return option.argParser((text: string, before: readonly T[] = []) => [
    ...before,
    ...text.split(',').map((part) => readBy(parse, part, option)),
  ])
}

/** The value of a text. A text that is refused is not repeated: it may be the URL of a database, with its password. */
function readBy<T>(parse: (text: string) => T | Rule, text: string, { long, envVar }: Option): T {
  const value = parse(text)
  if (!(value instanceof Rule)) return value
  const name = envVar === undefined ? long : `${long} (${envVar})`
  throw new AppError('misused', { message: `${name} must be ${value.text}.` })
}
