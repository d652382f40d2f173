import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { run } from '../../src/cli/cli.ts'
import { OPTIONS, SETTINGS } from '../../src/config.ts'
import { RefusedText } from '../../src/values.ts'
import { leafCommands, nameOf } from '../support/commands.ts'
import { makeIo } from '../support/io.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const KIB = 1024
const LABEL_MAX = 200
const NAME_MAX = 64

interface ValueRules {
  readonly takes: Readonly<Record<string, unknown>>
  readonly refuses: readonly string[]
}

const same = (...texts: readonly string[]) => Object.fromEntries(texts.map((text) => [text, text]))
/** These texts, which have no spaces, and the empty one, which no kind takes. */
const texts = (spaced: string) => ['', ...spaced.split(/\s+/)]
const network = (address: string, prefix: number) => ({ address, prefix })

/** What one option of each kind of value makes of texts, at the limits and one past them. */
const KINDS = {
  listen: {
    takes: {
      '127.0.0.1:0': { host: '127.0.0.1', port: 0 },
      'localhost:65535': { host: 'localhost', port: 65535 },
      '[::1]:3000': { host: '::1', port: 3000 },
      'unix:relative.sock': { socketPath: 'relative.sock' },
    },
    refuses: texts(`3000 :3000 127.0.0.1 127.0.0.1: 127.0.0.1:65536 127.0.0.1:-1 127.0.0.1:0x10 127.0.0.1:3000x ::1:3000
      [::1] [::1:3000 [localhost]:3000 http://localhost:3000 unix:`),
  },
  database: {
    takes: same(
      ...['plantstore.db', '/var/lib/plants and more.db', 'me@home/env=prod/10:00.db', 'postgres://me@host/plants'],
      ...['postgresql://me:p%40ss@host:5433/plants?sslmode=require', 'postgres://me@%2Frun%2Fpostgresql/plants'],
      'postgres://me@[::1]:5433/plants?sslmode=verify-full&sslrootcert=/etc/ca.pem',
      'postgres://me@host/plants?sslmode=require&channel_binding=require',
      ...['postgres://me@host/plants?sslmode=verify-full&sslrootcert=system', 'my-service=plants/port=1.db'],
    ),
    refuses: texts(`:memory: a\0b file:///plants.db mysql://me@host/plants
      host=db hostaddr=127.0.0.1 port=5432 dbname=plants user=me service=plants
      postgres:// postgres://host/plants postgres://me@host postgres://me@/plants postgres://me@one:1,two:2/plants
      postgres://me@host:65536/plants postgres://me:%@host/plants postgres://me@host/plants#x
      postgres://me@host/plants?sslmode=on postgres://me@host/plants?options=-cfsync
      postgres://me@host/plants?sslmode=require&sslrootcert=/etc/ca.pem postgres://me@host/plants?channel_binding=on
      postgres://me@host/plants?sslrootcert=system postgres://me@host/plants?sslmode=disable&sslrootcert=system
      postgres://me@host/plants?sslmode=prefer&sslrootcert=system postgres://me@host/plants?sslmode=require&sslrootcert=system
      postgres://me@host/plants?sslmode=verify-ca&sslrootcert=system`),
  },
  durability: { takes: same('full', 'normal', 'storage'), refuses: ['full ', ...texts('Full off toString')] },
  maxBody: {
    takes: { '1B': 1, '64KiB': 64 * KIB, '1024MiB': KIB ** 3 },
    refuses: ['64 KiB', ...texts(`0B 64 64KB 64kib -1B 1.5MiB ${KIB ** 3 + 1}B 1e3B`)],
  },
  listMax: {
    takes: { '1': 1, '2147483647': 2147483647 },
    refuses: [' 5', ...texts('0 -1 1.5 1e3 0x10 05 2147483648')],
  },
  accessLog: { takes: { on: true, off: false }, refuses: texts('On true 1') },
  databasePrepare: { takes: { true: true, false: false }, refuses: texts('True on 1') },
  quotaPlants: { takes: { '0': 0, '2147483647': 2147483647 }, refuses: texts('-1 00 01 2147483648') },
  rateLimit: {
    takes: {
      '1/s': { requests: 1, periodMs: 1000 },
      '100/m': { requests: 100, periodMs: MINUTE_MS },
      '1000000/h': { requests: 1_000_000, periodMs: 60 * MINUTE_MS },
    },
    refuses: ['100 /s', ...texts('100 0/s -1/s 1.5/s 1e3/s 01/s 100/d 100/S 100/1s 1000001/s')],
  },
  idleTimeout: { takes: { '5s': 5000, '255s': 255_000 }, refuses: texts('0s 4s 256s 5m 30 5000ms') },
  drain: {
    takes: { '0': 0, '0s': 0, '8s': 8000, '2m': 2 * MINUTE_MS, '1h': 60 * MINUTE_MS, '36500d': 36_500 * DAY_MS },
    refuses: ['8 s', ...texts('8 s 8ms -8s 1.5s 8S 1w 36501d 1m30s 1e3s')],
  },
  expires: { takes: { '1s': 1000 }, refuses: texts('0 0s never 90D') },
  tlsCert: { takes: same('/etc/plants and more.crt', 'plants.crt'), refuses: texts('a\0b') },
  corsOrigin: {
    takes: {
      'http://localhost:5173,https://a_b.org:8443': ['http://localhost:5173', 'https://a_b.org:8443'],
      'http://[::1]:8080': ['http://[::1]:8080'],
      'https://xn--bcher-kva.example': ['https://xn--bcher-kva.example'],
    },
    refuses: texts(`* null app.example.org //app.example.org https://app.example.org/ https://a.org/b https://A.org
      https://a.org:443 http://a.org:80 https://*.a.org https://me@a.org https://a.org, ,https://a.org https://bücher.example`),
  },
  trustedProxy: {
    takes: {
      '0.0.0.0/0,::/0': [network('0.0.0.0', 0), network('::', 0)],
      '192.0.2.1/32,2001:DB8::/128': [network('192.0.2.1', 32), network('2001:DB8::', 128)],
      '192.0.2.1,::1': [network('192.0.2.1', 32), network('::1', 128)],
      'unix,::ffff:10.0.0.0/104': ['unix', network('::ffff:10.0.0.0', 104)],
    },
    refuses: texts(`10.0.0.0/33 ::/129 10.0.0.0/ 10.0.0.0/08 10.0.0.0/-1 10.0.0/8 /8 10.0.0.0/8/8 010.0.0.0/8 [::1]
      fe80::1%eth0 localhost Unix unix:/run/proxy.sock 10.0.0.0/255.0.0.0 10.0.0.0/8, 10.0.0.1:80 * ::1/0x8`),
  },
  publicUrl: {
    takes: {
      'https://plants.example.org': 'https://plants.example.org',
      'http://localhost:8080/api/': 'http://localhost:8080/api',
    },
    refuses: texts(`plants.example.org ftp://example.org https://me@example.org https://:secret@example.org
      https://a.org/?b https://a.org/? https://a.org/#b https://a.org/"b https://a.org/б javascript:alert(1)`),
  },
  jwtRequestParam: {
    takes: {
      'scope=openid plants:write': [['scope', 'openid plants:write']],
      'resource=https://a.org/?b=c,states=x': [
        ['resource', 'https://a.org/?b=c'],
        ['states', 'x'],
      ],
    },
    refuses: texts(`scope scope= =x a-b=c a=b, client_id=x code=x code_verifier=x grant_type=x
      redirect_uri=x refresh_token=x response_type=x state=x a=b,state=x`),
  },
  owner: {
    takes: same('me', 'A.b_c@d-9', 'x'.repeat(NAME_MAX)),
    refuses: ['m e', 'me\n', ...texts(`mé a/b ${'x'.repeat(NAME_MAX + 1)}`)],
  },
  label: {
    takes: same('x', 'gardener’s 🌱 laptop', 'x'.repeat(LABEL_MAX)),
    refuses: ['a\nb', ...texts(`a\u001bb a\u007fb a\ud800b ${'x'.repeat(LABEL_MAX + 1)}`)],
  },
} satisfies Partial<Record<keyof typeof OPTIONS, ValueRules>>

const EMPTY_RULE = 'is empty: leave it out, or give it a value.'

type AnyOption = (typeof OPTIONS)[keyof typeof OPTIONS]

const parse = ({ parseArg }: AnyOption, text: string): unknown => parseArg?.(text, undefined)

/** What the refusal of a text says. */
function refusal(option: AnyOption, text: string): string {
  try {
    return `took ${JSON.stringify(text)} as ${JSON.stringify(parse(option, text))}`
  } catch (error) {
    if (error instanceof RefusedText) return error.predicate
    throw error
  }
}

describe.each(Object.entries<ValueRules>(KINDS))('a value like that of %s', (name, { takes, refuses }) => {
  const option = OPTIONS[name as keyof typeof KINDS] as AnyOption

  test('is taken up to its limits', () => {
    for (const [text, value] of Object.entries(takes)) expect([text, parse(option, text)]).toEqual([text, value])
  })

  test('is refused past its limits, with the text and the rule in one sentence', () => {
    const isRefused = (text: string) => /^(?:is empty:|(?:is ".+" but )?must be) [^\n]+$/.test(refusal(option, text))

    expect(refuses.filter((text) => !isRefused(text))).toEqual([])
  })
})

/**
 * Mistyped URLs of databases: a password where none belongs, or encoded wrongly, another scheme or none, and the syntax of libpq and
 * ADO.NET. Each has the password Sesame-99 or the user wrong, which no message may repeat.
 */
const MISTYPED_URLS: readonly string[] = [
  ...texts(`postgres://wrong@host/plants?password=Sesame-99 postgres://wrong@host/plants?Sesame-99
    postgres://wrong:Sesame-99@host/plants?sslmode=on postgres://wrong:Sesame-99@one,two/plants postgres://wrong:Sesame-99@host
    postgres://wrong:Sesame-99%40host/plants postgres://wrong:12#Sesame-99@host/plants postgres://wrong:12?Sesame-99@host/plants
    postgres://wrong:12@Sesame-99/34@host/plants postgres://wrong:%Sesame-99@host/plants
    "postgres://wrong:Sesame-99@host/plants" postgress://wrong:Sesame-99@host/plants postgres:/wrong:Sesame-99@host/plants
    postgres:wrong:Sesame-99%40host/plants postgres//wrong:Sesame-99@host/plants wrong:Sesame-99@host/plants
    mysql://wrong:Sesame-99@host/plants jdbc:postgresql://host/plants?user=wrong&password=Sesame-99
    Server=host;Uid=wrong;Pwd=Sesame-99`),
  ...[' postgres://wrong:Sesame-99@host/plants', 'host=host user=wrong password=Sesame-99'],
  'host=host user=wrong PASSWORD = Sesame-99',
]

test.each(['database', 'from', 'to'] as const)('the option %s repeats nothing of a mistyped URL', (name) => {
  const rules = MISTYPED_URLS.map((text) => refusal(OPTIONS[name] as AnyOption, text))

  expect(rules.filter((rule) => !/^(?:must be|is empty)/.test(rule))).toEqual([])
  expect(rules.filter((rule) => /Sesame|wrong/.test(rule))).toEqual([])
})

describe('every command', async () => {
  const takesValue = ({ required, optional }: CommandUnknownOpts['options'][number]) => required || optional
  const commands = (await leafCommands()).map((command) => ({ name: nameOf(command).join(' '), command }))
  /** A value for each option that the command insists on. Each of them takes this one. */
  const mandatory = (command: (typeof commands)[number]['command'], except: string) =>
    command.options.flatMap((option) => (option.mandatory && option.long !== except ? [`${option.long}`, 'me'] : []))
  const runCommand = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const { io, stdout, stderr } = makeIo(args, env)
    // Commander reads the variables of the process itself.
    Object.assign(process.env, env)
    const exitCode = await run(io)
    for (const name of Object.keys(env)) delete process.env[name]
    return { stdout: stdout(), stderr: stderr(), exitCode }
  }

  test.each(commands)(
    'refuses a bad value of each option, as flag and as variable: $name',
    async ({ name, command }) => {
      for (const option of command.options) {
        const { long = '', envVar } = option
        const args = [...name.split(' '), ...mandatory(command, long)]
        const alone = { rule: `option '${long}' takes no value: say ${long} alone.`, args: [...args, `${long}=yes`] }
        const bad: { rule: string; args: string[]; env?: Record<string, string> }[] = [
          ...(takesValue(option)
            ? [
                { rule: `${long} ${EMPTY_RULE}`, args: [...args, long, ''] },
                { rule: `${long} is not UTF-8`, args: [...args, `${long}=a\ufffd`] },
              ]
            : [alone]),
          ...(envVar === undefined ? [] : [{ rule: `${envVar} ${EMPTY_RULE}`, args, env: { [envVar]: '' } }]),
          ...(envVar === undefined || takesValue(option)
            ? []
            : [{ rule: `${envVar} is "yes" but must be one of true, false.`, args, env: { [envVar]: 'yes' } }]),
        ]

        for (const { rule, args, env } of bad) {
          const { stdout, stderr, exitCode } = await runCommand(args, env)

          expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
          expect(stderr).toStartWith(`plantstore: ${rule}`)
          expect(stderr).toMatch(/^[^\n]+\.\n$/)
        }
      }
    },
  )

  test.each(commands)('has a help that names no option which it does not take: $name', async ({ name, command }) => {
    const { stdout } = await runCommand(['help', ...name.split(' ')])
    const flags = ['--help', ...command.options.map(({ long }) => long)]
    const named = [...stdout.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([flag]) => flag)

    expect(named.filter((flag) => !flags.includes(flag))).toEqual([])
  })

  test.each(commands)('has two examples, which it understands, and exit codes in its help: $name', async ({ name }) => {
    const help = await runCommand(['help', ...name.split(' ')])
    // The shell takes what follows `<` or `>`.
    const lines = help.stdout.matchAll(/^ {2}plantstore (.+?)(?: [<>].*)?$/gm)
    const examples = [...lines].map(([, args = '']) => args.split(' '))

    expect(examples).toHaveLength(2)
    expect(help.stdout).toMatch(/\nExit codes:\n {2}0 {4}[A-Z].+\.\n(?: {2}\d+ +[A-Z].+\.\n)* {2}2 {4}[A-Z].+\.\n/)
    for (const args of examples) {
      const { io, stderr } = makeIo(args)
      const parsed: string[] = []
      const leaves = await leafCommands(io)
      for (const leaf of leaves) leaf.action(() => void parsed.push(nameOf(leaf).join(' ')))
      let root = leaves[0]
      while (root?.parent) root = root.parent
      await root?.parseAsync(args, { from: 'user' })

      expect({ parsed, stderr: stderr() }).toEqual({ parsed: [args[0] === 'help' ? 'help' : name], stderr: '' })
    }
  })
})

test('the settings file of the packages shows the default of each setting that has one', async () => {
  const file = await Bun.file(join(import.meta.dir, '../../contrib/packages/plantstore.env')).text()
  const lines = [...file.matchAll(/^#(PLANTSTORE_\w+)=(.*)$/gm)].map(
    ([, name = '', value = '']) => [name, value] as const,
  )
  const settingsWith = async (env: Readonly<Record<string, string>>) => {
    const serve = (await leafCommands(makeIo(['serve'], env).io)).find((each) => each.name() === 'serve')
    Object.assign(process.env, env)
    await serve?.action(() => {}).parent?.parseAsync(['serve'], { from: 'user' })
    for (const name of Object.keys(env)) delete process.env[name]
    // A flag that is not given is `undefined`.
    return Object.entries(serve?.opts() ?? {}).filter(([, value]) => value !== undefined && value !== false)
  }
  const shown = lines.filter(([name, value]) => value !== '' && name !== 'PLANTSTORE_DATABASE')

  expect(lines.map(([name]) => name)).toEqual(Object.values(SETTINGS).map(({ envVar }) => `${envVar}`))
  expect(await settingsWith(Object.fromEntries(shown))).toEqual(await settingsWith({}))
  expect(lines).toContainEqual(['PLANTSTORE_DATABASE', '/var/lib/plantstore/plantstore.db'])
})
