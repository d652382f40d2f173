import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Glob } from 'bun'
import GithubSlugger from 'github-slugger'
import packageJson from '../package.json'
import { EXIT, exitCodeOf } from '../src/cli/io.ts'
import { OPTIONS, REMOVED } from '../src/config.ts'
import { ERRORS } from '../src/http/answers.ts'
import { leafCommands, nameOf } from './support/commands.ts'
import {
  GENERATED_FILES,
  GENERATED_PAGES,
  metricNames,
  PAGES,
  PUBLISHED_IMAGE,
  pathOfPage,
  readPage,
  withGeneratedParts,
} from './support/docs.ts'
import { logCalls } from './support/log-calls.ts'
import { hashOfPictures, hashOfSources, pictureSizes } from './support/pictures.ts'

/** Variables of the tests, which CONTRIBUTING.md names. */
const VARIABLES_OF_TESTS = ['PLANTSTORE_TEST_POSTGRES', 'PLANTSTORE_TEST_POSTGRES_BIN']
/** A call without a command. */
const SAID_OF_PROGRAM = /^(?:--version|--help|COMMAND|help|token --help)\b/

const texts = new Map(await Promise.all(PAGES.map(async (page) => [page, await readPage(page)] as const)))
const textOf = (page: string): string => texts.get(page) ?? ''

/** A Markdown file without its blocks of code. */
const proseOf = (page: string): string => readFileSync(pathOfPage(page), 'utf8').replace(/^ *```[\s\S]*?^ *```$/gm, '')

/** The anchors of the headings in a Markdown file, as GitHub makes them. */
function anchorsOf(page: string): readonly string[] {
  const slugger = new GithubSlugger()
  return [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => slugger.slug(title))
}

/** The cells of a column of the tables under a heading, without their code marks. */
function columnOf(page: string, heading: string, column: number): readonly string[] {
  const [, section = ''] = textOf(page).split(`\n## ${heading}\n`)
  const [own = ''] = section.split(/^## /m)
  const rows = own.split('\n').filter((line) => line.startsWith('| '))
  return rows.slice(1).map((row) => row.split(/(?<!\\) \| /)[column]?.replace(/^\| /, '') ?? '')
}

describe('the documentation', () => {
  test.each(GENERATED_PAGES)('has the tables of the code in %s', async (page) => {
    expect(textOf(page)).toBe(await withGeneratedParts(page))
  })

  test('links only to files and headings that exist', () => {
    const broken = PAGES.flatMap((page) =>
      [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
        if (/^(?:https?|mailto):/.test(link)) return []
        const [file = '', anchor] = link.split('#')
        const target = file === '' ? page : resolve('/', dirname(page), file).slice(1)
        const leads = existsSync(pathOfPage(target)) && (anchor === undefined || anchorsOf(target).includes(anchor))
        return leads ? [] : [`${page}: ${link}`]
      }),
    )

    expect(broken).toEqual([])
  })

  test('has every page that a message names', async () => {
    const sources = [...new Glob('**/*.ts').scanSync(pathOfPage('src'))].map((file) => readPage(`src/${file}`))
    const named = (await Promise.all(sources)).flatMap((source) => source.match(/\bdocs\/[a-z/-]+\.md/g) ?? [])

    expect(named.length).toBeGreaterThan(0)
    expect(named.filter((page) => !existsSync(pathOfPage(page)))).toEqual([])
  })

  test('names every exit code', () => {
    const codes = [...Object.values(EXIT), ...(['SIGHUP', 'SIGINT', 'SIGTERM'] as const).map(exitCodeOf)]

    expect(columnOf('docs/reference/cli.md', 'Exit codes', 0).map(Number)).toEqual(codes.sort((a, b) => a - b))
  })
})

describe('the pages', () => {
  /** What the pages name by a pattern and does not exist, with the page. */
  const unknown = (pattern: RegExp, known: Iterable<string>): readonly string[] => {
    const names = new Set(known)
    return PAGES.flatMap((page) =>
      [...textOf(page).matchAll(pattern)].flatMap(([, name = '']) => (names.has(name) ? [] : [`${page}: ${name}`])),
    )
  }

  test('name no file of the repository that does not exist', () => {
    const named = PAGES.flatMap((page) =>
      [...textOf(page).matchAll(/\b(?:src|test)\/[\w./-]*\w/g)].map(([path]) => path),
    )

    expect(named.length).toBeGreaterThan(0)
    expect(named.filter((path) => !existsSync(pathOfPage(path)))).toEqual([])
  })

  test('name no error code that does not exist', () => {
    expect(
      unknown(
        /(?<![\d.,:])([45]\d{4})(?![\d,:]|\.\d)/g,
        Object.values(ERRORS).map(({ code }) => String(code)),
      ),
    ).toEqual([])
  })

  test('name no variable that does not exist', () => {
    const known = Object.values(OPTIONS).map(({ envVar = '' }) => envVar)
    const removed = Object.keys(REMOVED).map((flag) => `PLANTSTORE_${flag.slice(2).replaceAll('-', '_').toUpperCase()}`)

    expect(unknown(/\b(PLANTSTORE_[A-Z_]*[A-Z])\b/g, [...known, ...removed, ...VARIABLES_OF_TESTS])).toEqual([])
  })

  test('name no option that does not exist', () => {
    const known = Object.values(OPTIONS).map(({ long }) => long ?? '')

    expect(unknown(/`(--[a-z-]+)/g, [...known, ...Object.keys(REMOVED), '--help', '--version'])).toEqual([])
  })

  test('name no metric that does not exist', async () => {
    expect(unknown(/\b(plantstore_[a-z_]+[a-z])\b/g, await metricNames())).toEqual([])
  })

  test('call no command that does not exist, and with no option that it does not take', async () => {
    const commands = await leafCommands()
    const wrong = PAGES.flatMap((page) =>
      [...textOf(page).matchAll(/(?:^|[\s`(]|bin\/)plantstore ((?:[a-z]+(?![\w:])|--[a-z])[^`|\n]*)/gm)].flatMap(
        ([, call = '']) => {
          const words = call.split(/\s+/)
          const command = commands.find((each) => nameOf(each).every((word, index) => words[index] === word))
          if (command === undefined) return SAID_OF_PROGRAM.test(call) ? [] : [`${page}: plantstore ${call}`]
          const options = [...(call.split(/ [&;>]| -- /)[0]?.matchAll(/(?<= )--[a-z-]+/g) ?? [])].map(
            ([option]) => option,
          )
          const taken = ['--help', ...command.options.map(({ long }) => long)]
          return options.filter((option) => !taken.includes(option)).map((option) => `${page}: ${call}: ${option}`)
        },
      ),
    )

    expect(wrong).toEqual([])
  })
})

describe('the files of contrib', () => {
  test.each(Object.entries(GENERATED_FILES))('have their source in %s', async (file, make) => {
    expect(await readPage(file)).toBe(await make())
  })

  test('name a page and a heading that exist for each alert', async () => {
    const rules = await readPage('contrib/prometheus/plantstore-rules.yml')
    const runbooks = [...rules.matchAll(/ runbook: (\S+)#(\S+)$/gm)]

    expect(runbooks).toHaveLength(rules.match(/- alert:/g)?.length ?? 0)
    expect(runbooks.filter(([, page = '', anchor = '']) => !anchorsOf(page).includes(anchor))).toEqual([])
  })

  test('name no option and no variable that does not exist', async () => {
    // The scripts of the packages call other programs with their options.
    const files = [...new Glob('contrib/**/*.*').scanSync(pathOfPage('.'))].filter((file) => !file.endsWith('.sh'))
    const text = (await Promise.all(files.map(readPage))).join('\n')
    const named = text.match(/(?<![\w-])--[a-z][a-z-]*|\bPLANTSTORE_[A-Z_]*[A-Z]\b/g) ?? []
    const known = Object.values(OPTIONS).flatMap(({ long, envVar }) => [long, envVar])

    expect(named).toContain('--drain-wait')
    expect(named).toContain('PLANTSTORE_DATABASE')
    expect(named.filter((name) => !known.includes(name))).toEqual([])
  })
})

describe('the names of a release', () => {
  const { homepage, version } = packageJson
  const files = [...PAGES, ...new Glob('contrib/**/*.yaml').scanSync(pathOfPage('.'))]
  const foundIn = (pattern: RegExp) =>
    files.flatMap((file) => readFileSync(pathOfPage(file), 'utf8').match(pattern) ?? [])

  test('are those of the repository that package.json names', () => {
    const images = foundIn(/\bghcr\.io\/[\w/-]+/g)
    const repositories = foundIn(/\bhttps:\/\/github\.com\/[\w-]+\/plantstore\b/g)

    expect(new Set(images)).toEqual(new Set([PUBLISHED_IMAGE]))
    expect(new Set(repositories)).toEqual(new Set([homepage]))
    expect(new Set(foundIn(/--repo \S+\/plantstore/g))).toEqual(
      new Set([`--repo ${new URL(homepage).pathname.slice(1)}`]),
    )
  })

  test('have the version of package.json on the page that installs it', async () => {
    const versions = textOf('docs/how-to/install.md').match(/(?<=plantstore[-_:]|\/v)\d+\.\d+\.\d+/g)

    expect(new Set(versions)).toEqual(new Set([version]))
  })
})

describe('the how-to pages', () => {
  const pages = PAGES.filter((page) => page.startsWith('docs/how-to/'))

  test.each(pages)('have 50 to 200 lines each: %s', (page) => {
    const lines = textOf(page).trimEnd().split('\n').length

    expect(lines).toBeGreaterThanOrEqual(50)
    expect(lines).toBeLessThanOrEqual(200)
  })
})

describe('the README', () => {
  test('has at most 150 lines and 1 500 words', async () => {
    const readme = await readPage('README.md')

    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
    expect(readme.split(/\s+/).filter((word) => /\w/.test(word)).length).toBeLessThanOrEqual(1500)
  })

  test('has the commands that start and check to copy, with Bun and with Node.js alone', async () => {
    const blocks = [...(await readPage('README.md')).matchAll(/^```sh\n(.*)\n```$/gm)].map(([, line]) => line)
    const npx = `npx -y bun@${packageJson.engines.bun}`

    expect(blocks).toEqual(['bun start', `${npx} start`, 'bun run check', `${npx} run check`])
  })
})

describe('the pictures', () => {
  test('are made of the present sources of the page: else run `bun run pictures`', () => {
    expect(hashOfPictures()).toBe(hashOfSources())
  })

  test('have less than 150 kB each', () => {
    expect(pictureSizes()).toHaveLength(3)
    expect(pictureSizes().filter(([, bytes]) => bytes >= 150_000)).toEqual([])
  })
})

describe('the contributing page', () => {
  test('has a reason for each dependency', async () => {
    const names = Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies })
    const [, table = ''] = (await readPage('CONTRIBUTING.md')).split('\n## Dependencies\n')

    // `@types/…` stands for all names that begin like this.
    const listed = [...table.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
    const isListed = (name: string) =>
      listed.some((each) => each === name || (each.endsWith('…') && name.startsWith(each.slice(0, -1))))
    expect(names.filter((name) => !isListed(name))).toEqual([])
  })
})

describe('the reference of the log', () => {
  const PAGE = 'docs/reference/metrics-and-logs.md'
  const unquoted = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)

  test('has every field, and no other', async () => {
    const calls = await logCalls()
    const named = calls.flatMap(({ fields }) => fields)

    expect(columnOf(PAGE, 'Fields', 0).flatMap(unquoted).sort()).toEqual(
      [...new Set(['level', 'time', 'msg', ...named])].sort(),
    )
  })

  test('has every message with its level, and no other', async () => {
    const calls = await logCalls()
    const told = columnOf(PAGE, 'Messages', 1).flatMap(unquoted)
    const levels = columnOf(PAGE, 'Messages', 0)

    expect(told.map((message, index) => `${levels[index]}: ${message}`).sort()).toEqual(
      [...new Set(calls.map(({ level, message }) => `${level}: ${message}`))].sort(),
    )
  })
})
