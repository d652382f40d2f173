import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { pageNames } from '../../docs/site/pages.ts'
import { testLong } from '../fault/rounds.ts'
import { CHROMIUM, type Screen, startBrowser } from '../http/support/browser.ts'
import { IS_LONG } from '../support/long.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { copyProject } from './project-copy.ts'
import { PROJECT, runIn, runWell } from './run.ts'
import { QUESTIONS } from './site-questions.ts'

const REPOSITORY = 'https://forge.example.org/plantstore'
const BASE = '/plantstore/'
/** A folder for pictures of the site, to look at. */
const PICTURES = process.env.SITE_PICTURES

/** The page with the tables of error codes. */
const CODES_PAGE = 'reference/http'
/** The pages that are looked at: the start, long tables, an error, and all that have a diagram. */
const PAGES = [
  ...['index', 'how-to/proxy', 'errors/40901', 'reference/cli', CODES_PAGE],
  ...[...pageNames()]
    .filter(([page]) => readFileSync(join(PROJECT, page), 'utf8').includes('```mermaid'))
    .map(([, name]) => name.replace('.md', '')),
]
const SCREENS = [375, 768, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ viewport: { width, height: 900 }, colorScheme })),
)
const WIDE = { viewport: { width: 1440, height: 900 } }

/** What a browser shows, and where the site is. */
type Seen = Awaited<ReturnType<Awaited<ReturnType<typeof startBrowser>>['open']>> & Record<'origin' | 'url', string>

/** Serves the site of a project below the base. */
function serveSite(project: string) {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ url }) {
      const [before, page] = new URL(url).pathname.split(BASE, 2)
      const file = Bun.file(join(project, 'dist/site/html', page?.replace(/(?:^|\/)$/, '$&index.html') ?? 'none'))
      return before === '' && (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
    },
  })
  const { origin } = server.url
  return { origin, url: `${origin}${BASE}`, [Symbol.dispose]: () => void server.stop(true) }
}

/** Adds versions to the history of a copy of the project: one is older than the site, another one has a page of its own. */
async function addVersions(project: string): Promise<void> {
  const git = 'git -c user.name=site -c user.email=site@localhost'
  const commit = async (...tags: readonly string[]) => {
    await runWell(['sh', '-ec', `git add --all; ${git} commit -qm step`], project)
    for (const tag of tags) await runWell([...git.split(' '), 'tag', '-a', '-m', tag, tag], project)
  }
  const file = (name: string) => Bun.file(join(project, name))
  const [script, page] = [file('docs/site/build.ts'), file('docs/tutorial.md')]
  const [scriptText, pageText] = [await script.text(), await page.text()]
  await script.delete()
  await commit('v0.1.0', 'v0.2.0-rc.1')
  await script.write(scriptText)
  await page.write(`${pageText}\nThe quokka eats plants.\n`)
  await commit('v0.2.0')
  await page.write(pageText)
  await commit()
}

const build = (project: string, ...args: readonly string[]) =>
  runIn(
    ['env', `SITE_BASE=${BASE}`, `SITE_REPOSITORY=${REPOSITORY}`, process.execPath, 'run', 'site', ...args],
    project,
  )

const RESULTS = '.VPLocalSearchBox .result'

/** Opens the search, types a text, and returns the titles of what is found. */
async function searchFor(page: Page, text: string): Promise<readonly string[]> {
  // The key does nothing before the script of the page has run.
  await until('the search is open', async () => {
    await page.keyboard.press('Control+k')
    return page.getByRole('searchbox').isVisible()
  })
  // Otherwise the results of the search before could be taken for those of this one.
  await page.getByRole('searchbox').fill('')
  await page.locator(RESULTS).first().waitFor({ state: 'detached' })
  await page.getByRole('searchbox').fill(text)
  await page.locator(`${RESULTS}, .VPLocalSearchBox .no-results`).first().waitFor()
  return page.locator(RESULTS).allTextContents()
}

describe.skipIf(!IS_LONG || lacks(CHROMIUM))('the site', () => {
  let copy: Awaited<ReturnType<typeof copyProject>> | undefined
  let [project, told] = ['', '']
  beforeAll(async () => {
    copy = await copyProject()
    project = copy.path
    await addVersions(project)
    await runWell(['bun', 'install', '--frozen-lockfile'], project)
    const { stdout, stderr, exitCode } = await build(project, '--versions')
    if (exitCode !== 0) throw new Error(stdout + stderr)
    told = stdout
  })
  afterAll(() => copy?.[Symbol.dispose]())

  testLong('names the image and the repository of the publisher, and is not made without one', async () => {
    const page = await Bun.file(join(project, 'dist/site/html/how-to/install.html')).text()
    using copy = await copyProject()
    const file = Bun.file(join(copy.path, 'package.json'))
    await file.write((await file.text()).replace('Garden-Club', 'OWNER'))
    symlinkSync(join(PROJECT, 'node_modules'), join(copy.path, 'node_modules'))
    const { exitCode, stderr } = await build(copy.path)

    expect(page).toContain('docker pull ghcr.io/garden-club/plantstore:')
    expect(page).toContain('git clone https://github.com/Garden-Club/plantstore<')
    expect(page).not.toContain('OWNER/plantstore')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('replace OWNER in homepage')
  })

  testLong('refuses a link to a heading that does not exist', async () => {
    using copy = await copyProject()
    const page = Bun.file(join(copy.path, 'docs/explanation/scale.md'))
    await page.write(`${await page.text()}\n[gone](durability.md#gone)\n`)
    await runWell(['bun', 'install', '--frozen-lockfile'], copy.path)
    const { exitCode, stderr } = await build(copy.path)

    expect(exitCode).not.toBe(0)
    expect(stderr).toContain(`explanation/scale.html: ${BASE}explanation/durability.html#gone`)
  })

  const testSite = (title: string, screen: Screen, run: (seen: Seen) => Promise<void>) =>
    testLong(title, async () => {
      using site = serveSite(project)
      await using browser = await startBrowser()
      await run({ ...(await browser.open({ ...screen, only: site.origin })), ...site })
    })

  testSite('leads from version to version, and each searches its own pages', WIDE, async ({ page, url, errors }) => {
    const menu = page.locator('.VPNavBarMenu .VPFlyout')
    const goTo = async (version: string, path: string) => {
      await menu.hover()
      await menu.getByRole('link', { name: version }).click()
      await page.waitForURL(url + path)
      expect(await menu.getByRole('button').textContent()).toContain(version)
    }

    await page.goto(`${url}explanation/scale.html`)
    await menu.hover()
    const versions = await menu.getByRole('link').allTextContents()
    await goTo('v0.2.0', 'v0.2.0/')
    const found = await searchFor(page, 'quokka')
    await page.locator(RESULTS).first().click()
    await page.waitForURL(`${url}v0.2.0/tutorial.html**`)
    // The address changes before the page does.
    await page
      .locator(`a[href="${REPOSITORY}/blob/v0.2.0/docs/tutorial.md"]`, { hasText: 'Source of this page' })
      .waitFor()
    await page.locator('.VPNavBarMenu').getByRole('link', { name: 'API' }).click()
    await page.getByText('List plants').first().waitFor()
    const api = new URL(page.url()).pathname
    await page.goBack()
    await goTo('main', '')

    expect(versions.map((name) => name.trim())).toEqual(['main', 'v0.2.0'])
    expect(told).toContain('There is no site of v0.1.0')
    expect(found.length).toBe(1)
    expect(api).toBe(`${BASE}v0.2.0/openapi.html`)
    expect(await searchFor(page, 'quokka')).toEqual([])
    expect(errors).toEqual([])
  })

  testSite('answers each question by the first or second hit of its search', WIDE, async ({ page, url, origin }) => {
    await page.goto(`${url}tutorial.html`)
    const missed: string[] = []
    for (const [question, answer] of QUESTIONS) {
      await searchFor(page, question)
      const links = await page.locator(RESULTS).evaluateAll((hits) => hits.map((hit) => hit.getAttribute('href') ?? ''))
      const found = links.slice(0, 2).map((link) => new URL(link, origin).href.replace(url, '').replace('.html', ''))
      if (!found.includes(answer)) missed.push(`${question}: ${found.join(', ')} instead of ${answer}`)
    }

    expect(missed).toEqual([])
  })

  testSite('has each page as Markdown, which llms.txt lists for agents', WIDE, async ({ url, origin }) => {
    const read = async (path: string) => {
      const response = await fetch(new URL(path, origin))
      return response.ok ? response.text() : ''
    }
    const list = await read(`${url}llms.txt`)
    const links = [...list.matchAll(/\]\(([^)#]+\.\w+)[^)]*\)/g)].map(([, link = '']) => link)
    const files = await Promise.all(links.map(read))
    const listed = links.map((link) => link.replace(BASE, ''))
    const guides = [...pageNames().values()].filter((name) => /^(?:how-to|reference|explanation)\//.test(name))

    expect(list).toStartWith('# Plant Store\n\n> ')
    expect(links.filter((_, index) => files[index] === '')).toEqual([])
    expect(guides.filter((name) => !listed.includes(name))).toEqual([])
    expect(await read(`${url}how-to/tokens.md`)).toContain(`](${BASE}how-to/import-tokens.md)`)
  })

  for (const screen of SCREENS) {
    const { colorScheme, viewport } = screen
    testSite(
      `fits ${viewport.width} px, ${colorScheme}, and asks no other host`,
      screen,
      async ({ page, url, ...seen }) => {
        for (const name of PAGES) {
          await page.goto(`${url}${name}.html`)
          await page.locator('.vp-doc h1').waitFor()
          for (const diagram of await page.locator('.vp-doc .diagram').all()) await diagram.locator('svg').waitFor()
          const picture = `${name.replace('/', '-')}-${viewport.width}-${colorScheme}.png`
          if (PICTURES) await page.screenshot({ path: join(PICTURES, picture) })
          const width = await page.evaluate<number>('document.documentElement.scrollWidth')
          await page.evaluate(axe.source)
          // A color is not what it will be while it changes.
          await page.evaluate(
            'Promise.allSettled(document.getAnimations().map(({ finished }) => finished)).then(() => {})',
          )
          const pale = await page.evaluate<readonly unknown[]>(
            `axe.run({ include: '.vp-doc', exclude: '[class*=language-]' }, { runOnly: ['color-contrast'] }).then(({ violations }) => violations)`,
          )
          const wide = await page.evaluate<number>(
            `[...document.querySelectorAll('table')].filter((each) => each.scrollWidth > each.clientWidth).length`,
          )
          const isDark = await page.evaluate<boolean>('document.documentElement.classList.contains("dark")')
          expect([name, width, isDark, pale]).toEqual([name, viewport.width, colorScheme === 'dark', []])
          if (name === CODES_PAGE) expect(wide).toBe(0)
        }

        expect(seen.errors).toEqual([])
        expect(seen.requests.filter((request) => !request.includes(` ${seen.origin}/`))).toEqual([])
      },
    )
  }

  const screen = { permissions: ['clipboard-read', 'clipboard-write'] }
  testSite(
    'finds an error by its message, copies code, and leads to the source of a page',
    screen,
    async ({ page, url }) => {
      await page.goto(`${url}tutorial.html`)
      await searchFor(page, 'You have a plant with this id already')
      await page.locator(RESULTS).first().click()
      await page.getByRole('heading', { name: 'Error 40901' }).waitFor()
      const source = await page.getByRole('link', { name: 'Edit this page' }).getAttribute('href')
      await page.locator('.vp-doc button.copy').first().click()

      expect(source).toBe(`${REPOSITORY}/edit/main/src/http/answers.ts`)
      expect(await page.evaluate<string>('navigator.clipboard.readText()')).toStartWith('HTTP/1.1 409\n')
    },
  )
})
