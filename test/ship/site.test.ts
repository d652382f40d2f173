import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { testLong } from '../fault/rounds.ts'
import { BROWSER_TIMEOUT_MS, CHROMIUM, startBrowser } from '../http/support/browser.ts'
import { makeFolder } from '../support/folder.ts'
import { IS_LONG } from '../support/long.ts'
import { lacks, program } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { PROJECT, runIn, runWell } from './run.ts'

const HTML = join(PROJECT, 'dist/site/html')
const WORKFLOW = '.github/workflows/site.yml'
const REPOSITORY = 'https://forge.example.org/plantstore'
const BUILD_TIMEOUT_MS = 300_000
/** A folder for pictures of the site, to look at. */
const PICTURES = process.env.SITE_PICTURES

/** The pages that are looked at: the start, a long table, diagrams, an error. */
const PAGES = ['index', 'how-to/proxy', 'explanation/durability', 'errors/40901', 'reference/cli']
const SCREENS = [375, 768, 1440].flatMap((width) => [
  { width, height: 900, colorScheme: 'light' as const },
  { width, height: 900, colorScheme: 'dark' as const },
])

/** Serves the built site. */
function serveSite() {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ url }) {
      const file = Bun.file(join(HTML, new URL(url).pathname.replace(/\/$/, '/index.html')))
      return (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
    },
  })
  return { origin: server.url.origin, [Symbol.dispose]: () => void server.stop(true) }
}

test.skipIf(lacks(program('actionlint')))('the workflow of the site passes actionlint', async () => {
  expect(await runIn(['actionlint', '-no-color', '-oneline', WORKFLOW])).toEqual({
    stdout: '',
    stderr: '',
    exitCode: 0,
  })
})

describe.skipIf(!IS_LONG || lacks(CHROMIUM))('the site', () => {
  beforeAll(async () => {
    await runWell(['env', `SITE_REPOSITORY=${REPOSITORY}`, process.execPath, 'run', 'site'])
  }, BUILD_TIMEOUT_MS)

  testLong(
    'refuses a link to a heading that does not exist',
    async () => {
      using folder = makeFolder()
      await runWell(['git', 'clone', '--quiet', PROJECT, folder.path])
      const page = join(folder.path, 'docs/explanation/scale.md')
      await Bun.write(page, `${await Bun.file(page).text()}\n[gone](durability.md#gone)\n`)
      await runWell([process.execPath, 'install', '--frozen-lockfile'], folder.path)
      const { exitCode, stderr } = await runIn([process.execPath, 'run', 'site'], folder.path)

      expect(exitCode).not.toBe(0)
      expect(stderr).toContain('explanation/scale.html: /explanation/durability.html#gone')
    },
    BUILD_TIMEOUT_MS,
  )

  testLong.each(SCREENS)(
    'fits $width px, $colorScheme, and asks no other host',
    async ({ width, height, colorScheme }) => {
      using site = serveSite()
      await using browser = await startBrowser()
      const { page, errors, requests } = await browser.open({
        viewport: { width, height },
        colorScheme,
        only: site.origin,
      })
      for (const name of PAGES) {
        await page.goto(`${site.origin}/${name}.html`)
        await page.locator('.vp-doc h1').waitFor()
        for (const diagram of await page.locator('.vp-doc .diagram').all()) await diagram.locator('svg').waitFor()
        if (PICTURES)
          await page.screenshot({ path: join(PICTURES, `${name.replace('/', '-')}-${width}-${colorScheme}.png`) })
        expect([name, await page.evaluate<number>('document.documentElement.scrollWidth')]).toEqual([name, width])
        expect(await page.evaluate<boolean>('document.documentElement.classList.contains("dark")')).toBe(
          colorScheme === 'dark',
        )
      }

      expect(errors).toEqual([])
      expect(requests.filter((request) => !request.includes(` ${site.origin}/`))).toEqual([])
    },
    BROWSER_TIMEOUT_MS,
  )

  testLong(
    'finds an error by its message, copies code, and leads to the source of a page',
    async () => {
      using site = serveSite()
      await using browser = await startBrowser()
      const { page } = await browser.open({ permissions: ['clipboard-read', 'clipboard-write'] })
      await page.goto(`${site.origin}/tutorial.html`)
      // The key does nothing before the script of the page has run.
      await until('the search is open', async () => {
        await page.keyboard.press('Control+k')
        return page.getByRole('searchbox').isVisible()
      })
      await page.getByRole('searchbox').fill('You have a plant with this id already')
      await page.locator('.VPLocalSearchBox .result').first().click()
      await page.getByRole('heading', { name: 'Error 40901' }).waitFor()
      const source = await page.getByRole('link', { name: 'Edit this page' }).getAttribute('href')
      await page.locator('.vp-doc button.copy').first().click()

      expect(source).toBe(`${REPOSITORY}/edit/main/src/http/answers.ts`)
      expect(await page.evaluate<string>('navigator.clipboard.readText()')).toStartWith('HTTP/1.1 409\n')
    },
    BROWSER_TIMEOUT_MS,
  )

  testLong(
    'shows the OpenAPI document',
    async () => {
      using site = serveSite()
      await using browser = await startBrowser()
      const { page } = await browser.open({ only: site.origin })
      await page.goto(`${site.origin}/openapi.html`)
      await page.getByText('List plants').first().waitFor()

      expect(await page.getByText('Create a plant').count()).toBeGreaterThan(0)
    },
    BROWSER_TIMEOUT_MS,
  )
})
