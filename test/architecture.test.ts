import { describe, expect, test } from 'bun:test'
import { relative, resolve } from 'node:path'
import { Glob, type ImportKind, Transpiler } from 'bun'
import { FUNCTION, nodesOf } from './calls/instrument.ts'
import { runProgram } from './support/program.ts'
import { testOf } from './support/tested-in.ts'

const SRC = resolve(import.meta.dir, '../src')

/** Which parts each part may import, itself aside. What is not named here may be imported by nobody. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'error.ts': [],
  'address.ts': [],
  'clocks.ts': [],
  'controls.ts': [],
  'database-url.ts': ['error.ts'],
  domain: ['error.ts'],
  engine: ['error.ts'],
  formats: ['domain', 'error.ts'],
  store: ['domain', 'engine', 'error.ts', 'clocks.ts', 'database-url.ts'],
  'log.ts': ['controls.ts'],
  'version.ts': [],
  'config.ts': ['domain', 'error.ts', 'address.ts', 'log.ts', 'values.ts'],
  'values.ts': ['domain', 'error.ts', 'address.ts', 'database-url.ts'],
  // It runs in browsers, so it shares with the server only what runs anywhere.
  page: ['domain/etag.ts', 'domain/int64.ts', 'formats/plant-file.ts'],
  http: ['domain', 'formats', 'error.ts', 'address.ts', 'clocks.ts', 'log.ts', 'config.ts'],
  cli: [
    'domain',
    'formats',
    'error.ts',
    'address.ts',
    'clocks.ts',
    'database-url.ts',
    'store/open.ts',
    'store/database.ts',
    'http',
    'config.ts',
    'values.ts',
    'controls.ts',
    'log.ts',
    'version.ts',
  ],
  'main.ts': ['cli/cli.ts', 'cli/io.ts'],
}

/** What is started, and not imported: the process, its threads, and the scripts of the page. */
const ENTRY_POINTS = [
  ...['cli/serve/http-thread.ts', 'formats/web-file.ts', 'main.ts', 'page/main.tsx', 'store/sqlite/writer-thread.ts'],
]

const FUNCTION_LINES_MAX = 60
const COLUMNS_MAX = 130
/** What may stand beside a text in a line that is longer. */
const TEXT_LINE_COLUMNS = 60

interface Import {
  readonly from: string
  readonly to: string
}

const files = [...new Glob('**/*.{ts,tsx}').scanSync(SRC)].filter((file) => !file.endsWith('.d.ts')).sort()
const sources = await Promise.all(
  files.map(async (file) => ({ file, text: await Bun.file(resolve(SRC, file)).text() })),
)

type Source = (typeof sources)[number]

const loaderOf = (file: string) => (file.endsWith('.tsx') ? 'tsx' : 'ts')

/** All imports between files of ours, those of types included. */
const imports: readonly Import[] = sources.flatMap(({ file, text }) =>
  [...text.matchAll(/(?:from|import\(|import)\s*'(\.[^']+)'/g)].map(([, specifier = '']) => ({
    from: file,
    to: relative(SRC, resolve(SRC, file, '..', specifier)),
  })),
)

/** The files of ours that a file imports so. Imports of types are none. */
function importsOf({ file, text }: Source, kind: ImportKind): readonly string[] {
  const found = new Transpiler({ loader: loaderOf(file) }).scanImports(text).filter((found) => found.kind === kind)
  return found.map(({ path }) => relative(SRC, resolve(SRC, file, '..', path))).filter((path) => files.includes(path))
}

/** The files that import a path with this part so. */
const importersOf = (part: string, kind: ImportKind): readonly string[] =>
  sources.filter((source) => importsOf(source, kind).some((path) => path.includes(part))).map(({ file }) => file)

/** The files that are loaded with a file. */
const loadedBy = new Map(sources.map((source) => [source.file, importsOf(source, 'import-statement')]))

/** The files that a file imports in any way: also later, or for their types alone. */
const importedBy = new Map(files.map((file) => [file, imports.flatMap(({ from, to }) => (from === file ? [to] : []))]))

/** All files to which the imports of some files lead at any remove, those files included. */
function reachedFrom(
  entries: readonly string[],
  imported: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const reached = new Set(entries)
  for (const file of reached) for (const next of imported.get(file) ?? []) reached.add(next)
  return reached
}

/** All files that are loaded with some files, those files included. */
const loadedWith = (entries: readonly string[]) => reachedFrom(entries, loadedBy)

const partOf = (file: string): string => file.split('/')[0] ?? file

describe('the house', () => {
  test('has no part that this test does not know', () => {
    expect([...new Set(files.map(partOf))].sort()).toEqual(Object.keys(MAY_IMPORT).sort())
  })

  test('imports point inward only', () => {
    const outward = imports.filter(({ from, to }) => {
      if (to.startsWith('..') || partOf(from) === partOf(to)) return false
      return !MAY_IMPORT[partOf(from)]?.some((allowed) => to === allowed || to.startsWith(`${allowed}/`))
    })

    expect(outward).toEqual([])
  })

  test('imports nothing from outside of src but the version and what is embedded', () => {
    const outside = imports.filter(({ to }) => to.startsWith('..')).map(({ from, to }) => `${from} ${to}`)

    expect(outside).toEqual([
      'http/docs/page.ts ../node_modules/@scalar/api-reference/dist/browser/standalone.js',
      'version.ts ../package.json',
    ])
  })

  test('imports no file that is not there, and has no file that nobody imports', async () => {
    const imported = new Set(imports.map(({ to }) => to))

    expect(files.filter((file) => !imported.has(file))).toEqual(ENTRY_POINTS)
  })

  test.each([
    ['/tools/', [], '/tools/', ['store/open.ts', 'store/postgres/database.ts', 'store/sqlite/database.ts']],
    ['store/postgres/', ['store/postgres/database.ts'], 'store/postgres/store.ts', ['store/postgres/database.ts']],
  ])(
    'loads %s only later, so that no server loads tools, and none on SQLite the PostgreSQL driver',
    (part, ...expected) => {
      const others = files.filter((file) => !file.includes(part))
      const [loaded, later, importers] = expected

      expect(others).toContain('cli/serve/serve.ts')
      expect([...loadedWith(others)].filter((file) => file.includes(part))).toEqual(loaded)
      expect(importersOf(later, 'dynamic-import')).toEqual(importers)
    },
  )

  test('has an engine that imports itself, Bun and Node alone, and knows no plants, tokens or users', async () => {
    const engine = [...new Glob('engine/**/*').scanSync(SRC)].sort()
    const texts = await Promise.all(
      engine.map(async (file) => [file, await Bun.file(resolve(SRC, file)).text()] as const),
    )
    const packages = texts.flatMap(([file, text]) =>
      [...text.matchAll(/from '([^.'][^']*)'/g)].map(([, name = '']) => `${file} ${name}`),
    )
    // A pragma of SQLite, and accounts of the operating system.
    const account = /user_version|\bthis user\b|\b(?:an)?other users?\b|\bservice's (?:own )?user\b/g
    const words = texts.flatMap(([file, text]) =>
      [...text.replaceAll(account, '').matchAll(/.*(?:plant|token|user).*/gi)].map(([line]) => `${file} ${line}`),
    )

    expect(engine).toContain('engine/sqlite/open.ts')
    expect(packages.filter((each) => !/ (?:bun|bun:\w+|node:[\w/]+)$/.test(each))).toEqual([])
    expect(words).toEqual([])
  })

  test('shares with the script of the page only files of the domain that import nothing of ours', () => {
    const shared = imports.filter(({ from, to }) => partOf(from) === 'page' && partOf(to) !== 'page')

    expect([...new Set(shared.map(({ to }) => to))].sort()).toEqual([...(MAY_IMPORT.page ?? [])])
    expect(shared.flatMap(({ to }) => importedBy.get(to) ?? [])).toEqual([])
  })

  test('reads files of plants with what browsers have, and Papa Parse', () => {
    const texts = sources
      .filter(({ file }) => /^formats\/(?:plant-(?:csv|file)|web-file)/.test(file))
      .map(({ text }) => text)
    const found = texts.flatMap((text) => text.match(/ from '[^.'].*|\b(?:Bun|Buffer|process)\b/g) ?? [])

    expect(found).toEqual([" from 'papaparse'"])
  })

  test('has no file that imports itself by a circle of imports, those of types included', () => {
    // This import is of a type alone.
    expect(importedBy.get('cli/serve/http-service.ts')).toContain('cli/serve/tls.ts')
    expect(files.filter((file) => reachedFrom(importedBy.get(file) ?? [], importedBy).has(file))).toEqual([])
  })

  test.each([
    ['main.ts and a macro alone know the process', /\bprocess\./, ['main.ts', 'http/page/bundle.ts']],
    ['engine and store alone know a database', /bun:sqlite|bun:sql\b|Bun\.SQL/, ['engine/', 'store/']],
    ['driver.ts alone opens a database', /new Database\(/, ['engine/sqlite/driver.ts']],
    ['http/answers.ts alone knows what status a refusal has', /status: (?:4|5)\d\d/, ['http/answers.ts']],
    [
      'nothing but backups, open files and names of a file is found by reading folders',
      /\breaddir|\bGlob\b|scandir/,
      ['engine/sqlite/files/moved-files.ts', 'engine/sqlite/files/other-names.ts', 'engine/sqlite/tools/backups.ts'],
    ],
  ])('%s', (_, pattern, allowed) => {
    const found = sources.filter((source) => pattern.test(withoutComments(source))).map(({ file }) => file)

    expect(found.filter((file) => !allowed.some((prefix) => file.startsWith(prefix)))).toEqual([])
  })

  test('has no function of over 60 lines, and no line of over 130 columns but for a text', () => {
    const long = sources.flatMap(({ file, text }) => {
      const lines = text.split('\n').flatMap((line, index) => {
        const isText = line.replace(/(['"`]).*\1/, '').length <= TEXT_LINE_COLUMNS
        return line.length > COLUMNS_MAX && !isText ? [`${file}:${index + 1} has ${line.length} columns`] : []
      })
      return [...lines, ...longFunctions(file, text)]
    })

    expect(long).toEqual([])
  })

  test('has a test for each file: one of its name, or one that its first line names', () => {
    const without = sources.filter(({ file, text }) => testOf(file, text) === undefined).map(({ file }) => file)

    expect(without).toEqual([])
  })

  test('importing a module does nothing', async () => {
    const modules = files.filter((file) => !ENTRY_POINTS.includes(file) && partOf(file) !== 'page')
    const script = modules.map((file) => `await import(${JSON.stringify(resolve(SRC, file))})`).join('\n')

    expect(await runProgram([process.execPath, '-e', script])).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  })
})

test.each([
  [
    'insert rows by the names of columns, so that they know nothing of others',
    /insert into (?:plantstore\.)?(?:plants|tokens|users) (?:values|select)/g,
  ],
])('tests %s', async (_, pattern) => {
  const tests = [...new Glob('**/*.ts').scanSync(import.meta.dir)].sort()
  const found = await Promise.all(
    tests.map(async (file) => {
      const text = await Bun.file(resolve(import.meta.dir, file)).text()
      return [...text.matchAll(pattern)].map(([part]) => `${file}: ${part}`)
    }),
  )

  expect(found.flat()).toEqual([])
})

/** The code alone; what the transpiler drops is comments and types. It would run macros. */
const withoutComments = ({ file, text }: Source): string =>
  new Transpiler({ loader: loaderOf(file) }).transformSync(text.replaceAll(" with { type: 'macro' }", ''))

/** The functions of a file that have too many lines. */
const longFunctions = (file: string, text: string): readonly string[] =>
  nodesOf(text).flatMap(({ type, loc }) => {
    const lines = loc.end.line - loc.start.line + 1
    return FUNCTION.test(type) && lines > FUNCTION_LINES_MAX ? [`${file}:${loc.start.line} has ${lines} lines`] : []
  })
