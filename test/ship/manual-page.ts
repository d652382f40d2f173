import type { Argument, CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { createProgram, run } from '../../src/cli/cli.ts'
import { EXITS, STORE_EXITS } from '../../src/cli/command.ts'
import { OPTIONS, SETTINGS, VARIABLE_PREFIX } from '../../src/config.ts'
import { HOMEPAGE } from '../../src/version.ts'
import { leafCommands, nameOf, takersOf, withChoices } from '../support/commands.ts'
import { readPage } from '../support/docs.ts'
import { makeIo } from '../support/io.ts'
import { runWell } from './run.ts'

/** The longest line that `mandoc -T lint` accepts has 80 bytes. */
const LINE_WIDTH = 80

const FILES = {
  'plantstore.db': 'The database, by default in the working directory.',
  '/etc/plantstore/plantstore.env': 'The settings of the service of a package. Commands read them, too.',
  'plantstore.db-wal': 'The latest writes, while a process has the database open. Never delete it.',
  'plantstore.db-shm': 'The index of the latest writes. Never delete it.',
}

/**
 * The manual page plantstore(1) in the language mdoc(7), from the declarations of commands and options. The same commit gives the
 * same page, which has the date of the commit.
 */
export async function manualPage(committedAt: Date): Promise<string> {
  const commands = await leafCommands()
  const manuals = await Promise.all(commands.map(manualOf))
  const shared = sharedOptions(commands)
  const byHeading = (render: (group: readonly Manual[]) => readonly string[]) =>
    grouped(manuals, ({ heading }) => heading, render)
  const sections: Readonly<Record<string, readonly string[]>> = {
    NAME: ['.Nm plantstore', '.Nd store plants, and serve them over HTTP'],
    SYNOPSIS: [
      ...['.Nm', '.Ar command', '.Op Ar option ...', '.Op Ar argument ...'],
      ...['.Nm', '.Cm help', '.Op Ar command ...', '.Nm', '.Fl Fl version'],
    ],
    DESCRIPTION: [
      ...prose((await createProgram(makeIo().io)).description()),
      ...prose('The command serve is the server. The others work on its database, most of them also while it runs.'),
      ...prose('Results go to stdout, and everything for people goes to stderr.'),
    ],
    COMMANDS: byHeading((group) => list(group.map((manual) => commandItem(manual, shared)))),
    OPTIONS: [
      ...prose('Every command takes --help.'),
      ...prose('An option on the command line beats its variable, and a variable beats the default.'),
      ...prose('With a package, the settings of the service come before the default.'),
      ...grouped(
        shared,
        (option) => option.helpGroupHeading ?? 'Of several commands:',
        (group) => list(group.map((option) => [...optionItem(option), ...takersIfSeveral(option, commands)])),
      ),
    ],
    ENVIRONMENT: [
      ...prose('Each of these variables stands for an option.'),
      ...prose('If the option takes no value, the variable is true or false.'),
      '.Pp',
      ...list(
        Object.values(SETTINGS).map((option) => [`Ev ${option.envVar}`, flagOf(option)]),
        `${VARIABLE_PREFIX}DATABASE_PASSWORD_FILE -compact`,
      ),
    ],
    FILES: list(Object.entries(FILES).map(([path, text]) => [`Pa ${path}`, ...prose(text)])),
    'EXIT STATUS': list(await exitCodes()),
    EXAMPLES: byHeading((group) => [
      ...['.Bd -literal -compact', ...group.flatMap(({ examples }) => examples.map(exampleLine)), '.Ed'],
    ]),
    'SEE ALSO': [
      ...prose('The guides and the reference are at'),
      `.Lk ${HOMEPAGE} ,`,
      ...prose('in the folder docs of an archive, and in /usr/share/doc/plantstore of a package.'),
      ...prose('A server shows its API at /docs.'),
    ],
  }
  const date = committedAt.toLocaleDateString('en-US', { timeZone: 'UTC', dateStyle: 'long' })
  const head = [`.Dd ${date}`, '.Dt PLANTSTORE 1', '.Os']
  const body = Object.entries(sections).flatMap(([title, lines]) => [`.Sh ${title}`, ...lines])
  return `${[...head, ...body].join('\n')}\n`
}

type Manual = Awaited<ReturnType<typeof manualOf>>

/** A command, with the examples and the exit codes of its help. */
async function manualOf(command: CommandUnknownOpts) {
  const { io, stdout } = makeIo(['help', ...nameOf(command)])
  await run(io)
  const [, examples = '', codes = ''] = stdout().split(/\n(?:Examples|Exit codes):\n/)
  const exits = [...codes.matchAll(/^ {2}(\d+) +(.+)$/gm)].map(([, code = '', text = '']) => ({ code, text }))
  const [top] = [command, command.parent].filter((each) => each?.parent?.parent === null)
  return { command, exits, examples: examples.trim().split(/\n */), heading: top?.helpGroup() ?? '' }
}

/** The options that mean the same for several commands, and those with variables. The items of commands describe all others. */
function sharedOptions(commands: readonly CommandUnknownOpts[]): readonly Option[] {
  const uses = commands.flatMap(({ options }) => options)
  return Object.values(OPTIONS).filter((option) => {
    const same = uses.filter(({ long }) => long === option.long)
    return option.envVar !== undefined || (same.length > 1 && same.every((each) => each === option))
  })
}

function commandItem({ command, exits }: Manual, shared: readonly Option[]): Item {
  const own = command.options.filter((option) => !shared.includes(option))
  const others = command.options.filter((option) => shared.includes(option)).map(flagOf)
  const general = [...Object.values(EXITS), ...Object.values(STORE_EXITS)]
  const special = exits.filter(({ text }) => !general.includes(text))
  const options = command.options.slice(0, 1).map(() => 'Oo Ar option ... Oc')
  const codes = special.map(({ code, text }) => `Exits with ${code}: ${text}`).join(' ')
  return [
    ['Cm', ...nameOf(command), ...options, ...command.registeredArguments.map(usageOf)].join(' '),
    ...prose(command.description()),
    ...list([...command.registeredArguments.map(argumentItem), ...own.map(optionItem)]),
    ...(others.length > 0 ? ['.Pp', 'Other options:', ...others.map(withComma)] : []),
    ...(codes === '' ? [] : ['.Pp', ...prose(codes)]),
  ]
}

const usageOf = (argument: Argument): string => {
  const name = `Ar ${argument.name()}${argument.variadic ? ' ...' : ''}`
  return argument.required ? name : `Oo ${name} Oc`
}

const argumentItem = (argument: Argument): Item => [`Ar ${argument.name()}`, ...prose(withChoices(argument))]

function optionItem(option: Option): Item {
  const [, value = ''] = /[<[](\w+)[>\]]/.exec(option.flags) ?? []
  const name = flagOf(option).slice('.'.length)
  const usage = option.required ? ` Ar ${value}` : ` Op Ar ${value}`
  const byDefault = option.defaultValueDescription
  return [
    value === '' ? name : name + usage,
    ...prose(withChoices(option)),
    ...(byDefault ? ['The default is', `.Ql ${byDefault} .`] : []),
  ]
}

/** Which commands mean this by an option, if others mean something else by the same one. */
const takersIfSeveral = (option: Option, commands: readonly CommandUnknownOpts[]): readonly string[] =>
  Object.values(OPTIONS).filter(({ long }) => long === option.long).length > 1
    ? prose(`Of ${takersOf(option, commands)}.`)
    : []

/** The rows of the table of exit codes on the page about the command line. */
async function exitCodes(): Promise<readonly Item[]> {
  const rows = (await readPage('docs/reference/cli.md')).matchAll(/^\| (\d+) \| (.+) \| (.+) \|$/gm)
  return [...rows].map(([, code = '', meaning = '', examples = '']) => [
    code,
    ...prose(`${meaning}: ${examples.replaceAll('`', '').replaceAll('\\|', '|')}.`),
  ])
}

const flagOf = ({ long }: Option): string => `.Fl Fl ${long?.slice(2)}`

const withComma = (macro: string, index: number, { length }: readonly string[]): string =>
  macro + (index === length - 1 ? ' .' : ' ,')

/** The words after `.It`, and the lines below it. */
type Item = readonly string[]

const list = (items: readonly Item[], width = 'Ds'): readonly string[] =>
  items.length > 0
    ? [`.Bl -tag -width ${width}`, ...items.flatMap(([tag, ...lines]) => [`.It ${tag}`, ...lines]), '.El']
    : []

/** A subsection for each heading. */
const grouped = <T>(
  items: readonly T[],
  headingOf: (item: T) => string,
  render: (items: readonly T[]) => readonly string[],
): readonly string[] =>
  [...Map.groupBy(items, headingOf)].flatMap(([heading, group]) => [
    `.Ss ${heading.replace(':', '')}`,
    ...render(group),
  ])

/** Each sentence begins a line, as mdoc(7) asks. A dot at the beginning of a line would be a macro. */
const prose = (text: string): readonly string[] =>
  text.split(/(?<=[.?!]) /).flatMap((sentence) =>
    Bun.wrapAnsi(escapeRoff(sentence), LINE_WIDTH)
      .split('\n')
      .map((line) => line.replace(/^(?=[.'])/, '\\&')),
  )

/** A call that is too long for a terminal goes on in a second line. */
const exampleLine = (call: string): string => escapeRoff(call.replace(/^(?=.{75})(.{1,72}) (?=--)/, '$1 \\\n    '))

/** Two hyphens of an option would become dashes. */
const escapeRoff = (text: string): string => text.replaceAll('\\', '\\e').replaceAll('--', '\\-\\-')

if (import.meta.main) {
  const time = await runWell(['git', 'show', '--no-patch', '--format=%cI', 'HEAD'])
  process.stdout.write(await manualPage(new Date(time.trim())))
}
