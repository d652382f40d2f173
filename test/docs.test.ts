import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Glob } from 'bun'
import GithubSlugger from 'github-slugger'
import { forSite, pageNames } from '../docs/site/pages.ts'
import packageJson from '../package.json'
import { EXIT, exitCodeOf } from '../src/cli/io.ts'
import { OPTIONS } from '../src/config.ts'
import { ERRORS } from '../src/http/answers.ts'
import { QUESTIONS } from './ship/site-questions.ts'
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

const METRICS = await metricNames()
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

  test('keeps each anchor of a link on the site', () => {
    const anchorsIn = (text: string) =>
      [...text.matchAll(/\]\([^)\s]*?(#[^)\s]+)?\)/g)].map(([, anchor = '']) => anchor)
    const lost = [...pageNames().keys()].filter((page) => {
      const text = readFileSync(pathOfPage(page), 'utf8')
      return anchorsIn(forSite(page, text, (path) => path)).join() !== anchorsIn(text).join()
    })

    expect(lost).toEqual([])
  })

  test('has the heading of each question that the search of the site is tried with', () => {
    const pages = new Map([...pageNames()].map(([page, name]) => [name.replace('.md', ''), page]))
    const gone = QUESTIONS.filter(([, answer]) => {
      const [name = '', anchor = ''] = answer.split('#')
      const page = pages.get(name)
      return page === undefined ? !name.startsWith('errors/') : !anchorsOf(page).includes(anchor)
    })

    expect(QUESTIONS.length).toBeGreaterThan(30)
    expect(gone).toEqual([])
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
  const files = [...new Glob('contrib/**/*.*').scanSync(pathOfPage('.'))]
  const options = Object.values(OPTIONS)
  const flags = [...options.map(({ long = '' }) => long), '--help', '--version']
  const variables = [...options.map(({ envVar = '' }) => envVar), ...VARIABLES_OF_TESTS]
  const codes = Object.values(ERRORS).map(({ code }) => String(code))

  test.each([
    ['file of the repository', [...PAGES, 'package.json'], /\b((?:src|test)\/[\w./-]*\w)/g, existsSync],
    ['error code', PAGES, /(?<![\d.,:])([45]\d{4})(?![\d,:]|\.\d)/g, codes],
    ['variable', [...PAGES, ...files], /\b(PLANTSTORE_[A-Z_]*[A-Z])\b/g, variables],
    ['option', PAGES, /`(--[a-z-]+)/g, flags],
    // Scripts call other programs with their options.
    ['option in contrib', files.filter((file) => !/\.(?:sh|ts)$/.test(file)), /(?<![\w-])(--[a-z][a-z-]*)/g, flags],
    ['metric', PAGES, /\b(plantstore_[a-z_]+[a-z])\b/g, METRICS],
  ] as const)('name no %s that does not exist', (_, pages, pattern, known) => {
    const named = pages.flatMap((page) =>
      [...readFileSync(pathOfPage(page), 'utf8').matchAll(pattern)].map(([, name = '']) => ({ page, name })),
    )
    const exists = (name: string) => (typeof known === 'function' ? known(pathOfPage(name)) : known.includes(name))

    expect(named.length).toBeGreaterThan(0)
    expect(named.filter(({ name }) => !exists(name))).toEqual([])
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
})

describe('the names of a release', () => {
  const { version } = packageJson
  const files = [...PAGES, ...new Glob('contrib/**/*.yaml').scanSync(pathOfPage('.'))]
  const foundIn = (pattern: RegExp) =>
    files.flatMap((file) => readFileSync(pathOfPage(file), 'utf8').match(pattern) ?? [])

  test('have OWNER, which a release replaces, and the version of package.json', () => {
    const versions = textOf('docs/how-to/install.md').match(/(?<=plantstore[-_:]|\/v)\d+\.\d+\.\d+/g)

    expect(new Set(foundIn(/\bghcr\.io\/[\w/-]+/g))).toEqual(new Set([PUBLISHED_IMAGE]))
    expect(new Set(foundIn(/\bhttps:\/\/github\.com\/[\w-]+\/plantstore\b/g))).toEqual(
      new Set(['https://github.com/OWNER/plantstore']),
    )
    expect(new Set(foundIn(/--repo \S+\/plantstore/g))).toEqual(new Set(['--repo OWNER/plantstore']))
    expect(new Set(versions)).toEqual(new Set([version]))
  })
})

test.each(PAGES.filter((page) => page.startsWith('docs/how-to/')))('%s has 50 to 200 lines', (page) => {
  const lines = textOf(page).trimEnd().split('\n').length

  expect(lines).toBeGreaterThanOrEqual(50)
  // Troubleshooting has all symptoms on one page.
  expect(lines).toBeLessThanOrEqual(page.endsWith('/troubleshoot.md') ? 260 : 200)
})

describe('the README', () => {
  const readme = textOf('README.md')

  test('has at most 130 lines and 1 200 words', () => {
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(130)
    expect(readme.split(/\s+/).filter((word) => /\w/.test(word)).length).toBeLessThanOrEqual(1200)
  })

  test('has the commands that start and check to copy, with Bun and with Node.js alone', () => {
    const blocks = [...readme.matchAll(/^```sh\n(.*)\n```$/gm)].map(([, line]) => line)
    const npx = `npx -y bun@${packageJson.engines.bun}`

    expect(blocks).toEqual(['bun start', `${npx} start`, 'bun run check', `${npx} run check`])
  })
})

test('the pictures are made of the present sources of the page: else run `bun run pictures`', () => {
  expect(hashOfPictures()).toBe(hashOfSources())
  expect(pictureSizes()).toHaveLength(3)
  expect(pictureSizes().filter(([, bytes]) => bytes >= 150_000)).toEqual([])
})

test('the contributing page has a reason for each dependency', () => {
  const names = Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies })
  const [, table = ''] = textOf('CONTRIBUTING.md').split('\n## Dependencies\n')

  // `@types/…` stands for all names that begin like this.
  const listed = [...table.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  const isListed = (name: string) =>
    listed.some((each) => each === name || (each.endsWith('…') && name.startsWith(each.slice(0, -1))))
  expect(names.filter((name) => !isListed(name))).toEqual([])
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
