/**
 * `bun run site`: makes the site of the documentation in dist/site/html, from the same Markdown files that the repository
 * shows. Fails if a link or an anchor leads nowhere. With `--versions`, the newest tag of each minor version that has a site
 * gets a folder of its name.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Glob } from 'bun'
import manifest from '../../package.json'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { checkPublisher, published } from '../../test/ship/publisher.ts'
import { errorPages, forSite, listForPrograms, PROJECT, pageNames, pictures, sidebar } from './pages.ts'

const HERE = import.meta.dir
const WORK = join(PROJECT, 'dist/site')
const SOURCE = join(WORK, 'pages')
const HTML = join(WORK, 'html')
const SCALAR = join(PROJECT, 'node_modules/@scalar/api-reference/dist/browser/standalone.js')

/** Where the site is served, the repository behind it, and its versions. The workflow sets these variables. */
const { SITE_BASE: base = '/', SITE_REPOSITORY: repository = manifest.homepage } = process.env
const { SITE_REF: ref = 'main', SITE_VERSIONS } = process.env
const tags = process.argv.includes('--versions') ? taggedSites() : []
const versions = SITE_VERSIONS?.split(',') ?? ['main', ...tags]

checkPublisher()
await prepare()
await run(['bun', 'install', '--frozen-lockfile'], WORK)
await run(['bun', 'run', 'vitepress', 'build', 'pages', '--outDir', HTML], WORK)
writeMarkdown()
for (const tag of tags) await buildTag(tag)
const broken = brokenLinks()
if (broken.length > 0) throw new Error(`links lead nowhere:\n${broken.join('\n')}`)
console.log(`The site is in ${HTML}.`)

/** Writes the source of the site: the pages, the pictures, the pages of errors, and the OpenAPI document. */
async function prepare(): Promise<void> {
  rmSync(SOURCE, { recursive: true, force: true })
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(SOURCE, path)), { recursive: true })
    writeFileSync(join(SOURCE, path), published(text))
  }
  const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8')
  const inRepository = (path: string): string => `${repository}/blob/${ref}/${path}`
  const origins: Record<string, string> = {}
  for (const [page, name] of pageNames()) {
    origins[name] = page
    write(name, forSite(page, read(page), inRepository))
  }
  for (const [name, text] of errorPages(read('docs/how-to/troubleshoot.md'), inRepository)) {
    origins[name] = 'src/http/answers.ts'
    write(name, text)
  }
  for (const path of pictures()) cpSync(join(PROJECT, path), join(SOURCE, path))
  write('public/openapi.json', JSON.stringify(await openApiDocument(undefined)))
  cpSync(SCALAR, join(SOURCE, 'public/scalar.js'))
  cpSync(join(HERE, 'openapi.html'), join(SOURCE, 'public/openapi.html'))
  cpSync(join(HERE, 'icon.svg'), join(SOURCE, 'public/icon.svg'))
  cpSync(join(HERE, 'vitepress'), join(SOURCE, '.vitepress'), { recursive: true })
  const settings = { base, repository, ref, versions, origins, sidebar: sidebar(read('docs/README.md')) }
  write('.vitepress/settings.json', JSON.stringify(settings))
  for (const file of ['package.json', 'bun.lock']) cpSync(join(HERE, file), join(WORK, file))
}

/** Writes the Markdown of each page beside its HTML, and `llms.txt`, which lists all pages for programs that read Markdown. */
function writeMarkdown(): void {
  // Links have the base before them in HTML alone.
  const withBase = (text: string): string => text.replaceAll('](/', `](${base}`)
  const read = (page: string): string => withBase(readFileSync(join(SOURCE, page), 'utf8'))
  for (const page of new Glob('**/*.md').scanSync(SOURCE)) writeFileSync(join(HTML, page), read(page))
  writeFileSync(join(HTML, 'llms.txt'), withBase(listForPrograms(readFileSync(join(SOURCE, 'pages.md'), 'utf8'))))
}

/**
 * The links of the built pages whose page or anchor does not exist, or that lead to `#`. VitePress itself looks at no anchors. What
 * is outside of `base` are other versions, which the build of them all looks at.
 */
function brokenLinks(): readonly string[] {
  const pages = new Map(
    [...new Glob('**/*.html').scanSync(HTML)].map((page) => [page, readFileSync(join(HTML, page), 'utf8')]),
  )
  return [...pages].flatMap(([page, text]) =>
    [...text.matchAll(/ href="([^"]+)"/g)].flatMap(([, link = '']) => {
      if (link === '#') return [`${page}: ${link}`]
      const { origin, pathname, hash } = new URL(link, `http://site${base}${page}`)
      if (origin !== 'http://site' || !pathname.startsWith(base)) return []
      const file = pathname.slice(base.length).replace(/(?:^|\/)$/, '$&index.html')
      const hasAnchor = hash === '' || pages.get(file)?.includes(` id="${decodeURIComponent(hash.slice(1))}"`) === true
      return existsSync(join(HTML, file)) && hasAnchor ? [] : [`${page}: ${link}`]
    }),
  )
}

/** The newest tag of each minor version, the newest first. Tells which of these have no site, because they are older. */
function taggedSites(): readonly string[] {
  const git = (...args: readonly string[]) => Bun.spawnSync(['git', ...args], { cwd: PROJECT })
  // A pre-release is older than its release.
  const list = git('-c', 'versionsort.suffix=-', 'tag', '--list', 'v*', '--sort=-version:refname').stdout.toString()
  const minors = list.split('\n').map((tag) => tag.split('.', 2).join('.'))
  const newest = list.split('\n').filter((tag, index) => tag !== '' && minors.indexOf(minors[index] ?? '') === index)
  const hasSite = (tag: string) => git('cat-file', '-e', `${tag}:docs/site/build.ts`).exitCode === 0
  const older = newest.filter((tag) => !hasSite(tag))
  if (older.length > 0) console.log(`There is no site of ${older.join(', ')}, which are older than the script.`)
  return newest.filter(hasSite)
}

/** Builds the site of a tag with the tag's own script, and puts it into a folder of its name. */
async function buildTag(tag: string): Promise<void> {
  const tree = join(WORK, 'tags', tag)
  rmSync(tree, { recursive: true, force: true })
  await run(['git', 'worktree', 'prune'], PROJECT)
  await run(['git', 'worktree', 'add', '--detach', tree, tag], PROJECT)
  await run(['bun', 'install', '--frozen-lockfile'], tree)
  await run(['bun', 'docs/site/build.ts'], tree, {
    SITE_BASE: `${base}${tag}/`,
    SITE_REF: tag,
    SITE_VERSIONS: versions.join(),
  })
  cpSync(join(tree, 'dist/site/html'), join(HTML, tag), { recursive: true })
  await run(['git', 'worktree', 'remove', '--force', tree], PROJECT)
}

async function run([program = '', ...args]: readonly string[], cwd: string, env = {}): Promise<void> {
  const command = program === 'bun' ? process.execPath : program
  const options = {
    cwd: resolve(cwd),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'] as const,
  }
  const exitCode = await Bun.spawn([command, ...args], { ...options, stdio: [...options.stdio] }).exited
  if (exitCode !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${exitCode}`)
}
