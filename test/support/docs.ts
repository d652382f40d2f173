import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { Glob } from 'bun'
import type { OpenAPIV3 } from 'openapi-types'
import { run } from '../../src/cli/cli.ts'
import { EXITS, STORE_EXITS } from '../../src/cli/command.ts'
import { OPTIONS, SETTINGS } from '../../src/config.ts'
import { codeTable, ERRORS } from '../../src/http/answers.ts'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { createMetricsApp } from '../../src/http/metrics.ts'
import { RequestStatistics, WriteStatistics } from '../../src/http/statistics.ts'
import { createLogger } from '../../src/log.ts'
import { leafCommands, nameOf, takersOf, withChoices } from './commands.ts'
import { makeIo } from './io.ts'

/** The width of the lines of the settings file. */
const SETTINGS_WIDTH = 100

/** The database of the units, which is not the default of the executable. */
const UNIT_DATABASE = '/var/lib/plantstore/plantstore.db'

const INTRODUCTION = [
  'Settings of Plant Store, of the server and its nightly backups. Written by bun run docs.',
  'To change a setting, remove the # before it and run, as root: systemctl restart plantstore.',
  'A value behind a # is the default. If a setting shows no value, give it one when you remove its #.',
  'The commands of /usr/bin/plantstore read this file, too, but no drop-in of systemctl edit.',
]

/** The settings file of the packages: each option of `serve`, as a comment with its default. */
async function settingsFile(): Promise<string> {
  const options: readonly Option[] = Object.values(SETTINGS)
  const groups = Map.groupBy(options, ({ helpGroupHeading = '' }) => helpGroupHeading)
  const sections = [...groups].map(([heading, members]) => [`# ---- ${heading}`, ...members.map(setting)].join('\n\n'))
  return `${[INTRODUCTION.map(comment).join('\n'), ...sections].join('\n\n')}\n`
}

/** The text of an option, and its line. */
function setting(option: Option): string {
  const isFlag = !option.required && !option.optional
  const value = option.name() === 'database' ? UNIT_DATABASE : option.defaultValueDescription
  const shown = isFlag ? 'false' : value
  return `${comment(option.description)}\n#${option.envVar}=${shown ?? ''}`
}

const comment = (text: string): string => Bun.wrapAnsi(text, SETTINGS_WIDTH - 2).replace(/^/gm, '# ')

/** The width of the lines of a page. */
const LINE_WIDTH = 120

const PROJECT = resolve(import.meta.dir, '../..')

/** The path of a page. */
export const pathOfPage = (page: string): string => resolve(PROJECT, page)

/** The text of a page. */
export const readPage = (page: string): Promise<string> => Bun.file(pathOfPage(page)).text()

/** The name of the image in the repository. In a release it has the owner of `homepage` of package.json. */
export const PUBLISHED_IMAGE = 'ghcr.io/OWNER/plantstore'

/** All pages for people, by their paths in the repository. */
export const PAGES: readonly string[] = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md'].filter((page) => Bun.file(pathOfPage(page)).size > 0),
  ...[...new Glob('docs/**/*.md').scanSync(PROJECT)].filter((page) => !page.includes('node_modules')).sort(),
]

/** The block that a page shows after a comment. Every such comment is on one page alone. */
export async function blockAfter(comment: string): Promise<string> {
  const texts = await Promise.all(PAGES.map(readPage))
  const found = texts.filter((text) => text.includes(`<!-- ${comment} -->\n`))
  if (found.length !== 1) throw new Error(`${found.length} pages have a comment ${comment}`)
  const block = /^```\w+\n([\s\S]*?)^```$/m.exec(found[0]?.split(`<!-- ${comment} -->\n`)[1] ?? '')
  if (block?.[1] === undefined || block.index !== 0) throw new Error(`no block follows the comment ${comment}`)
  return block[1]
}

/** The text of a file in `contrib`, by its path in the repository. */
export function readContrib(path: string): Promise<string> {
  if (!path.startsWith('contrib/')) throw new Error(`${path} is not in contrib`)
  return Bun.file(pathOfPage(path)).text()
}

/** All objects of such a file, which is YAML: an array if it has several. */
// biome-ignore lint/suspicious/noExplicitAny: tests compare it as a whole
export async function yamlInContrib(path: string): Promise<any> {
  return Bun.YAML.parse(await readContrib(path))
}

/** The parts of pages that are generated from the code, by the name in the comment before each. */
const GENERATED: Readonly<Record<string, Readonly<Record<string, () => string | Promise<string>>>>> = {
  'docs/reference/api.md': { operations: operationTable, codes: codeTable },
  'docs/reference/cli.md': { commands: commandTable, options: optionTable, help: commandSections },
  'docs/reference/metrics-and-logs.md': { metrics: metricTable, reasons: reasonTable },
}

/** The names of the parts that a page shows. */
const shownParts = (text: string): readonly string[] =>
  [...text.matchAll(/<!-- (\S+): written by bun run docs -->/g)].map(([, name = '']) => name)

/** The pages with generated parts. */
export const GENERATED_PAGES: readonly string[] = PAGES.filter(
  (page) => page in GENERATED || shownParts(readFileSync(pathOfPage(page), 'utf8')).length > 0,
)

/** A page with its generated parts made again: tables of the code, and files of `contrib`. */
export async function withGeneratedParts(page: string): Promise<string> {
  let text = await readPage(page)
  const tables = GENERATED[page] ?? {}
  for (const name of new Set([...Object.keys(tables), ...shownParts(text)])) {
    const part = new RegExp(`(<!-- ${name}: written by bun run docs -->)[^]*?(<!-- /${name} -->)`)
    if (!part.test(text)) throw new Error(`${page} has no part ${name}`)
    const written = await (tables[name]?.() ?? contribBlock(name))
    text = text.replace(part, (_, start: string, end: string) => `${start}\n${written}\n${end}`)
  }
  return text
}

/** A block of code with a file of `contrib`. */
async function contribBlock(path: string): Promise<string> {
  const language = /\.(?:service|timer)$/.test(path) ? 'ini' : path.split('.').at(-1)
  return `\`\`\`${language}\n${await readContrib(path)}\`\`\``
}

/** The files of `contrib` that are made of other files there, or of the code. */
export const GENERATED_FILES: Readonly<Record<string, () => Promise<string>>> = {
  'contrib/kubernetes/base/prometheus-rule.yaml': prometheusRule,
  'contrib/packages/plantstore.env': settingsFile,
}

/** The alert rules as an object of the Prometheus operator. */
async function prometheusRule(): Promise<string> {
  const rules = await readContrib('contrib/prometheus/plantstore-rules.yml')
  return `# Written by bun run docs, of contrib/prometheus/plantstore-rules.yml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: plantstore
spec:
${rules.replace(/^(?=.)/gm, '  ')}`
}

const markdownTable = (columns: readonly string[], rows: readonly (readonly string[])[]): string =>
  [columns, columns.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')

const code = (text: string): string => `\`${text}\``

async function operationTable(): Promise<string> {
  const { paths } = await openApiDocument(undefined)
  const rows = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item ?? {}).map(([method, operation]) => operationRow(method, path, operation as Described)),
  )
  return markdownTable(['operation', 'request', 'parameters', 'success', '`error`'], rows)
}

type Described = OpenAPIV3.OperationObject<{ parameters?: OpenAPIV3.ParameterObject[] }>

function operationRow(method: string, path: string, { operationId = '', parameters = [], responses }: Described) {
  const names = (parameters as readonly OpenAPIV3.ParameterObject[]).map(({ name }) => code(name))
  const statuses = Object.keys(responses)
  const errors = Object.values(responses).flatMap((response) => {
    const examples = 'content' in response ? response.content?.['application/json']?.examples : undefined
    return Object.values(examples ?? {}).flatMap((example) => ('value' in example ? [Number(example.value.error)] : []))
  })
  const successes = statuses.filter((status) => Number(status) < 400)
  return [
    code(operationId),
    code(`${method.toUpperCase()} ${path}`),
    names.join(', '),
    successes.join(', '),
    errors.sort((a, b) => a - b).join(', '),
  ]
}

/** Stands in the table of options for the commands that a line below it lists. */
const COMMANDS_OF_A_STORE = 'commands of a store'

async function optionTable(): Promise<string> {
  const commands = await leafCommands()
  const ofAStore = takersOf(OPTIONS.databasePrepare, commands)
  const rows = Object.values(OPTIONS).map((option) => {
    const texts = [option.envVar, option.defaultValueDescription]
    const [variable = '', byDefault = ''] = texts.map((text) => (text ? code(text) : ''))
    const takers = takersOf(option, commands).replace(ofAStore, COMMANDS_OF_A_STORE)
    return [code(option.flags), takers, variable, byDefault, withChoices(option)]
  })
  const table = markdownTable(['option', 'of', 'variable', 'default', 'what it does'], rows)
  return `${table}\n\nThe ${COMMANDS_OF_A_STORE} are: ${ofAStore}.`
}

/** The words that call a command. */
const callOf = (command: CommandUnknownOpts): string => ['plantstore', ...nameOf(command)].join(' ')

async function commandTable(): Promise<string> {
  const commands = await leafCommands()
  const rows = commands.map((command) => {
    const call = callOf(command)
    return [`[${code(call)}](#${call.replaceAll(' ', '-')})`, command.description()]
  })
  return markdownTable(['command', 'what it does'], rows)
}

/** The texts of exit codes that mean the same for every command. */
const GENERAL_EXITS = [EXITS, STORE_EXITS].flatMap((exits) => Object.values(exits))

/**
 * A section for each command: its arguments and options, examples, and the exit codes of its own. Examples show how a command
 * without arguments is called.
 */
async function commandSections(): Promise<string> {
  const sections = (await leafCommands()).map(async (command) => {
    const { io, stdout } = makeIo(['help', ...nameOf(command)])
    await run(io)
    const [, manual = ''] = stdout().split('\nExamples:\n')
    const [examples = '', exitCodes = ''] = manual.split('\nExit codes:\n')
    const [usage = ''] = stdout().split('\n')
    const args = command.registeredArguments.map((argument) => `- ${code(argument.name())}: ${withChoices(argument)}\n`)
    const options = command.options.map(({ long }) => code(long ?? '')).join(', ')
    const names =
      command.options.length === Object.keys(SETTINGS).length
        ? 'all that have [a variable](#options-and-variables)'
        : options
    const codes = [...exitCodes.matchAll(/^ {2}(\d+) +(.+)$/gm)].flatMap(([, number, when = '']) =>
      GENERAL_EXITS.includes(when) ? [] : [`- ${number}: ${when}`],
    )
    const parts = [
      `### ${callOf(command)}`,
      command.description(),
      args.length === 0 ? '' : `\`\`\`text\n${usage.replace('Usage: ', '')}\n\`\`\``,
      args.join('').trim(),
      options === '' ? '' : Bun.wrapAnsi(`Options: ${names}.`, LINE_WIDTH),
      `Examples:\n\n\`\`\`text\n${examples.trimEnd().replace(/^ {2}/gm, '')}\n\`\`\``,
      codes.length === 0 ? '' : `Exit codes:\n\n${codes.join('\n')}`,
    ]
    return parts.filter((part) => part !== '').join('\n\n')
  })
  return (await Promise.all(sections)).join('\n\n')
}

/** What a server without requests answers at `/metrics`. Each counter and histogram has its labels already. */
async function emptyMetrics(): Promise<string> {
  const http = new RequestStatistics()
  http.keyFailures = 0
  http.answer({ operation: 'listPlants', error: undefined }, 200, 1, 0)
  const store = {
    load: () => ({ waitingWrites: 0, longestWaitMs: 0 }),
    measure: async () => ({ databaseBytes: 0, walBytes: 0, expiringTokens: 0 }),
    checkReady: async () => {},
    checkIntegrity: async () => [],
  }
  const own = { thread: 0, http, writes: new WriteStatistics(), store }
  const sources = { ...own, version: '', nowMs: Date.now }
  const answer = createMetricsApp(sources, createLogger('error', process.stderr))
  return (await answer(new Request('http://localhost/metrics'))).text()
}

/** The metrics, each with its name, type, labels and meaning. */
export async function metricRows(): Promise<readonly (readonly [string, string, readonly string[], string])[]> {
  const text = await emptyMetrics()
  return [...text.matchAll(/^# HELP (\w+) (.+)\n# TYPE \w+ (\w+)$/gm)].map(([, name = '', help = '', type = '']) => {
    const [, labels = ''] = new RegExp(`^${name}(?:_bucket)?\\{(.*)\\} `, 'm').exec(text) ?? []
    const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label)
    return [name, type, names.filter((label) => label !== 'le'), help]
  })
}

/** The names of all metrics, as queries write them. */
export const metricNames = async (): Promise<readonly string[]> =>
  (await metricRows()).flatMap(([name, type]) =>
    type === 'histogram' ? ['', '_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name],
  )

async function metricTable(): Promise<string> {
  const rows = (await metricRows()).map(([name, type, labels, help]) => [
    code(name),
    type,
    labels.map(code).join(', '),
    help,
  ])
  return markdownTable(['metric', 'type', 'labels', 'meaning'], rows)
}

function reasonTable(): string {
  const rows = Object.entries(ERRORS).map(([reason, entry]) => [code(reason), String(entry.code)])
  return markdownTable(['reason', '`error`'], rows)
}

if (import.meta.main) {
  for (const [file, make] of Object.entries(GENERATED_FILES)) await Bun.write(pathOfPage(file), await make())
  for (const page of GENERATED_PAGES) await Bun.write(pathOfPage(page), await withGeneratedParts(page))
}
