/**
 * `bun run pictures`: makes the pictures of README.md from the running product with Chromium, and notes of which sources they are.
 * The page at `/`, light and dark, and the first minute on a terminal, whose text is what the commands print.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Glob } from 'bun'
import { startBrowser } from '../http/support/browser.ts'
import { serve } from './executable.ts'
import { makeFolder } from './folder.ts'
import { until } from './until.ts'

const PROJECT = join(import.meta.dir, '../..')
const PICTURES = join(PROJECT, 'docs/pictures')
const SOURCES = join(PICTURES, 'sources.sha256')
const SCREEN = { viewport: { width: 1100, height: 560 } }
/** The address in the README. The server listens on a free port. */
const ADDRESS = '127.0.0.1:3000'
const TOKEN = 'plst_3HsGt…'

const PLANTS = [
  { id: 1, name: 'Monstera deliciosa', tag: 'evergreen' },
  { id: 2, name: 'Boston fern', tag: 'half shade' },
  { id: 3, name: 'Basil', tag: 'herb' },
  { id: 4, name: 'Ficus lyrata', tag: 'evergreen' },
  { id: 42, name: 'Aloe vera' },
  { id: 1001, name: 'Olive tree', tag: 'outdoors' },
  { id: 9007199254740993n, name: 'Bonsai', tag: 'outdoors' },
]

/** The hash of what the pictures show: the sources of the page, and this script. */
export function hashOfSources(): string {
  const files = ['src/page/**/*', 'src/http/page/*', 'test/support/pictures.ts'].flatMap((pattern) => [
    ...new Glob(pattern).scanSync(PROJECT),
  ])
  const hash = new Bun.CryptoHasher('sha256')
  for (const file of files.sort()) hash.update(`${file}\n`).update(readFileSync(join(PROJECT, file)))
  return hash.digest('hex')
}

/** The hash of the sources that the pictures were made of. */
export const hashOfPictures = (): string => readFileSync(SOURCES, 'utf8').trim()

/** The picture files and their sizes in bytes. */
export const pictureSizes = (): readonly (readonly [string, number])[] =>
  [...new Glob('*.{png,svg}').scanSync(PICTURES)].map((file) => [file, Bun.file(join(PICTURES, file)).size])

const escapeXml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** Draws lines of a terminal. A browser in the dark shows the same colours: terminals are dark. */
function drawTerminal(lines: readonly string[]): string {
  const height = 46 + lines.length * 20
  const rows = lines.map((line, index) => {
    const kind = line.startsWith('$ ') ? ' class="typed"' : ''
    return `<text x="20" y="${56 + index * 20}"${kind} xml:space="preserve">${escapeXml(line)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 ${height}" width="940" height="${height}" role="img" aria-labelledby="title">
<title id="title">The first minute: the server starts, prints a token, stores a plant and lists it</title>
<style>
  text { font: 13px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #c9d1d9 }
  .typed { fill: #7ee787 }
</style>
<rect width="940" height="${height}" rx="8" fill="#0d1117"/>
<circle cx="22" cy="20" r="6" fill="#ff5f57"/><circle cx="42" cy="20" r="6" fill="#febc2e"/><circle cx="62" cy="20" r="6" fill="#28c840"/>
${rows.join('\n')}
</svg>
`
}

/** Cuts long lines, as a terminal of this width wraps them. */
const wrap = (line: string): readonly string[] => line.match(/.{1,112}/g) ?? ['']

async function make(): Promise<void> {
  using folder = makeFolder()
  const server = await serve(join(folder.path, 'plantstore.db'), ['--first-token'])
  try {
    await until('the server has printed its addresses', (see) => see(server.stderr()).includes('/docs\n'))
    const printed = server.stderr().trim()
    const [token = ''] = /plst_\w+/.exec(printed) ?? []
    const origin = `http://127.0.0.1:${server.port}`
    const curl = printed.split('\n').filter((line) => line.startsWith('  curl'))
    const answers = curl.map((command) => Bun.spawnSync(['sh', '-c', `${command} --silent`]).stdout.toString())
    const shown = (text: string) => text.replaceAll(token, TOKEN).replaceAll(`127.0.0.1:${server.port}`, ADDRESS)
    const typed = curl.flatMap((command, index) => [`$ ${command.trim()}`, answers[index] ?? ''])
    const lines = ['$ bun start', ...printed.split('\n'), '', ...typed].map(shown).flatMap(wrap)
    writeFileSync(join(PICTURES, 'first-minute.svg'), drawTerminal(lines))

    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    for (const { id, ...plant } of PLANTS.slice(1)) {
      const body = `{"id":${id},${JSON.stringify(plant).slice(1)}`
      await fetch(`${origin}/plants`, { method: 'POST', headers, body })
    }
    await using browser = await startBrowser()
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await browser.open({ ...SCREEN, colorScheme, reducedMotion: 'reduce' })
      await page.goto(origin)
      await page.getByLabel('Access token').fill(token)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('Olive tree').waitFor()
      await page.mouse.move(0, 0)
      await page.screenshot({ path: join(PICTURES, `page-${colorScheme}.png`), animations: 'disabled' })
    }
  } finally {
    await server.kill()
  }
  writeFileSync(SOURCES, `${hashOfSources()}\n`)
  for (const [file, bytes] of pictureSizes()) console.log(`${relative(PROJECT, join(PICTURES, file))}: ${bytes} bytes`)
}

if (import.meta.main) await make()
