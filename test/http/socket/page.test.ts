import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { testLong } from '../../fault/rounds.ts'
import { serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { IS_LONG } from '../../support/long.ts'
import { addPlants } from '../../support/many-plants.ts'
import { lacks } from '../../support/requirement.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { BROWSER_TIMEOUT_MS, CHROMIUM, startBrowser } from '../support/browser.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

/** All tests share a browser. Each page has a profile of its own. */
let started: ReturnType<typeof startBrowser> | undefined
const browser = () => {
  started ??= startBrowser()
  return started
}
afterAll(async () => (await started)?.[Symbol.asyncDispose]())

const urlOf = ({ port }: Pick<Service, 'port'>) => `http://127.0.0.1:${port}/`

const LIGHT = { colorScheme: 'light', background: 'rgb(255, 255, 255)' } as const
const DARK = { colorScheme: 'dark', background: 'rgb(19, 23, 31)' } as const
/** In CSS pixels. A screen of 1440 pixels has 720 at a zoom of 200 %. */
const WIDTHS = [390, 720, 820, 1440]

/** Screens of people; `bun run check:long page` tries all of them, and `bun run check` a dark phone. */
const SCREENS = WIDTHS.flatMap((width) => [DARK, LIGHT].map((colors) => ({ ...colors, width })))
  .slice(0, IS_LONG ? undefined : 1)
  .map(({ width, ...colors }) => ({
    ...colors,
    name: `${width} px, ${colors.colorScheme}`,
    viewport: { width, height: 900 },
  }))

/** A folder for pictures of the page, to look at. */
const PICTURES = process.env.PAGE_PICTURES

const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const status = (page: Page) => page.getByRole('status')

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Access token').fill(token)
  await button(page, 'Sign in').click()
}

/** The texts of the cells of id, name and tag. */
const rows = (page: Page) =>
  page.evaluate<readonly (readonly string[])[]>(
    `[...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].slice(0, 3).map((cell) => cell.textContent))`,
  )

const ids = async (page: Page) => (await rows(page)).map(([id]) => id)

/** What axe-core finds wrong on the page as it is. */
async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(axe.source)
  return page.evaluate<readonly string[]>(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes.map(({ html }) => html).join(' ')))`,
  )
}

/** A refusal of the server is on the console, too. */
const withoutRefusals = (errors: readonly string[]) =>
  errors.filter((error) => !/^Failed to load resource: the server responded with a status of 4\d\d/.test(error))

/** How much a page may grow while it shows and downloads a million plants, which have 60 MB. */
const HEAP_GROWTH_MAX_BYTES = 5 * 1024 ** 2

/** Texts that would become code or markup, or break the page, if they were not shown as text. */
const HOSTILE = [
  ...[
    '<script>hostile = 1</script>',
    '<img src=x onerror="hostile = 1">',
    '"><svg onload=hostile=1>',
    '</td></table><h1>x',
  ],
  ...[
    'javascript:hostile=1',
    '{{constructor.constructor("hostile = 1")()}}',
    `\${hostile = 1}`,
    '&lt;b&gt;&amp;&#60;',
    '<!--',
  ],
  ...[
    '{"id":1}',
    '[{"id":7,"name":"x"},{"id":8',
    '","id":9,"',
    '\\',
    '\\"',
    "'",
    '`',
    '__proto__',
    'constructor',
    'toString',
  ],
  ...[
    '  two  spaces  ',
    'line\nline',
    '\ttab',
    '\u202eright to left',
    '\u2066isolate',
    '\ufeffBOM',
    '\u0007\u001b[31m',
    '\u0085\u2028\u2029',
  ],
  ...['🪴'.repeat(9), 'Z̸̛͈'.repeat(40), 'x'.repeat(5000), 'שלום', 'مرحبا', '', ' ', '0', 'null', 'undefined', 'NaN'],
  ...[
    'https://example.org/',
    '<a href="https://example.org">',
    '<link rel=stylesheet href=//example.org/x.css>',
    '<base href=//example.org>',
  ],
  ...[
    '<style>*{display:none}</style>',
    '<iframe src=//example.org>',
    '<form action=//example.org>',
    '<meta http-equiv=refresh content=0>',
  ],
]
const hostile = (index: number) => ({
  name: HOSTILE[index % HOSTILE.length] ?? '',
  tag: HOSTILE[(index * 7 + Math.floor(index / HOSTILE.length)) % HOSTILE.length] ?? '',
})

const LARGE = ['-9223372036854775808', '9007199254740993', '9223372036854775807']

describe.concurrent.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('the page in a browser, $name', (transport) => {
  test.each(SCREENS)(
    'signs in, shows, adds, deletes and restores plants, and signs out, at $name',
    async ({ name, background, ...screen }) => {
      await using service = await startService(transport)
      for (const id of LARGE) await service.create(`{"id":${id},"name":"Exact ${id}"}`)
      addPlants(service.database, 60)
      const { page, requests, errors, violations } = await (await browser()).open({
        ...screen,
        only: urlOf(service).slice(0, -1),
      })
      const problems: string[] = []
      const look = async (moment: string) => {
        if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}, ${moment}.png`) })
        problems.push(...(await accessibilityProblems(page)))
        expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(screen.viewport.width)
      }

      await page.goto(urlOf(service))
      await look('start')
      await page.getByText('The browser keeps yours until you sign out, even if you close the tab.').waitFor()
      await signIn(page, 'plst_wrong')
      await page.getByRole('alert').getByText('The token is not valid (any more)').waitFor()
      await look('refused')
      await signIn(page, service.token)
      await page.getByText('Exact -9223372036854775808').waitFor()
      const shown = await page.content()
      const [lowest] = await ids(page)
      await look('plants')

      await field(page, 'Id').fill('7')
      await button(page, 'Add').click()
      await page.getByText('`name` is required and must be a string').waitFor()
      await field(page, 'Name').fill('Moss')
      await field(page, 'Id').fill('5.5')
      await button(page, 'Add').click()
      await page.getByText('`id` is required and must be a whole number').waitFor()
      await field(page, 'Id').fill('2')
      await button(page, 'Add').click()
      await page.getByText('It is “Monstera 2” (evergreen).').waitFor()
      const wrong = await page.evaluate<string>('document.querySelector("[aria-invalid]").name')
      await look('taken')
      await field(page, 'Id').fill('9007199254740995')
      await field(page, 'Tag (optional)').fill('shade')
      await button(page, 'Add').click()
      await status(page).getByText('Added “Moss”.').waitFor()
      const left = await field(page, 'Name').inputValue()

      await button(page, 'Delete plant 2').click()
      await button(page, 'Undo').waitFor()
      const deleted = await service.get(2)
      await page.keyboard.press('Enter')
      await status(page).getByText('Restored 1 plant.').waitFor()
      const restored = await service.get(2)
      const questions: string[] = []
      page.on('dialog', async (dialog) => {
        questions.push(dialog.message())
        await (questions.length === 1 ? dialog.dismiss() : dialog.accept())
      })
      await page.getByRole('checkbox', { name: '3', exact: true }).check()
      await page.getByRole('checkbox', { name: '4', exact: true }).check()
      await look('selected')
      await button(page, 'Delete selected').click()
      const kept = [await service.get(3), await service.get(4)]
      await button(page, 'Delete selected').click()
      await status(page).getByText('Deleted 2 plants.').waitFor()
      const gone = [await service.get(3), await service.get(4)]
      await button(page, 'Undo').click()
      await status(page).getByText('Restored 2 plants.').waitFor()
      // The list is read again after that, and has another next page.
      await page.getByRole('checkbox', { name: '4', exact: true }).waitFor()

      await button(page, 'Next').click()
      await page.getByText('Page 2').waitFor()
      await page.getByText('Exact 9223372036854775807').waitFor()
      const second = await rows(page)
      await page.getByRole('searchbox').fill('EXACT 9007')
      const filtered = await rows(page)
      await look('filtered')
      await page.getByRole('searchbox').fill('')
      await button(page, 'Back').click()
      await page.getByText('Exact -9223372036854775808').waitFor()
      const first = await rows(page)
      const downloading = page.waitForEvent('download')
      await button(page, 'Download all').click()
      const lines = await Bun.file(await (await downloading).path()).text()
      const listed = await service.list('?include=id')

      await button(page, 'Sign out').click()
      await page.getByLabel('Access token').waitFor()
      await look('end')

      expect([lowest, wrong, left]).toEqual([LARGE[0] ?? '', 'id', ''])
      expect(shown).not.toContain(service.token)
      expect([deleted, ...gone].map(({ status }) => status)).toEqual([404, 404, 404])
      expect(kept.map(({ status }) => status)).toEqual([200, 200])
      expect(restored.body).toEqual({ name: 'Monstera 2', tag: 'evergreen' })
      expect(questions).toEqual(['Delete 2 plants?', 'Delete 2 plants?'])
      expect(filtered).toEqual([['9007199254740993', 'Exact 9007199254740993', '']])
      expect([first.length, first.concat(second).length]).toEqual([50, 64])
      expect(lines).toBe(listed.text.slice(1, -1).replaceAll('},{', '}\n{').concat('\n'))
      expect(first.concat(second).map(([id]) => id)).toEqual(
        [...lines.matchAll(/^\{"id":(-?\d+)/gm)].map(([, id]) => id),
      )
      expect(await page.evaluate<number>('sessionStorage.length')).toBe(0)
      expect(await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')).toBe(background)
      expect(problems).toEqual([])
      expect(withoutRefusals(errors)).toEqual([])
      expect(await violations()).toEqual([])
      expect(requests.filter((request) => !/^\w+ (?:blob:)?http:\/\/127\.0\.0\.1:/.test(request))).toEqual([])
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'can be used with the keyboard alone, and moves nothing for people who want that',
    async () => {
      await using service = await startService(transport)
      await service.create({ id: 1, name: 'Fern' })
      const { page } = await (await browser()).open({ reducedMotion: 'reduce' })
      const { keyboard } = page
      /** Presses Tab until something with this name has the focus. */
      const tabTo = async (name: string) => {
        for (let tabs = 0; tabs < 30; tabs++) {
          await keyboard.press('Tab')
          const focused = `(({ ariaLabel, name, textContent }) => ariaLabel || name || textContent)(document.activeElement)`
          if ((await page.evaluate<string>(focused)) === name) return
        }
        throw new Error(`no way leads to ${name}`)
      }

      await page.goto(urlOf(service))
      await tabTo('token')
      await keyboard.type(service.token)
      await keyboard.press('Enter')
      await page.getByText('Fern').waitFor()
      await tabTo('id')
      await keyboard.type('2')
      await keyboard.press('Tab')
      await keyboard.type('Ivy')
      await keyboard.press('Enter')
      await status(page).getByText('Added “Ivy”.').waitFor()
      // The focus is in the form again.
      await keyboard.type('3')
      await keyboard.press('Tab')
      await keyboard.type('Moss')
      await keyboard.press('Enter')
      await page.getByRole('cell', { name: 'Moss' }).waitFor()
      await tabTo('Delete plant 1')
      const ring = await page.evaluate<string>('getComputedStyle(document.activeElement).boxShadow')
      await keyboard.press('Space')
      await button(page, 'Undo').waitFor()
      const deleted = await service.names()
      await keyboard.press('Enter')
      await status(page).getByText('Restored 1 plant.').waitFor()
      const moving = await page.evaluate<number>('document.getAnimations().length')
      await tabTo('Sign out')
      await keyboard.press('Enter')
      await page.getByLabel('Access token').waitFor()

      expect(deleted).toEqual(['Ivy', 'Moss'])
      expect(await service.names()).toEqual(['Fern', 'Ivy', 'Moss'])
      expect(ring).not.toBe('none')
      expect(moving).toBe(0)
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'hides from a read token what it cannot do, and signs out a token that is revoked',
    async () => {
      await using service = await startService(transport)
      await service.create({ id: 1, name: 'Fern' })
      const { text: token, id } = await service.createToken({ scope: 'read' })
      const { page } = await (await browser()).open()

      await page.goto(urlOf(service))
      await signIn(page, token)
      await page.getByText('Fern').waitFor()
      const controls = await page.getByRole('button').or(page.getByRole('textbox')).or(page.getByRole('checkbox')).all()
      const names = await Promise.all(controls.map((control) => control.textContent()))
      await page.reload()
      await page.getByText('Fern').waitFor()
      await service.store.revokeTokens({ id }, Date.now())
      await until('the token is refused', async () => (await service.list('', { token })).status !== 200)
      await button(page, 'Download all').click()
      await page.getByRole('alert').getByText('The token is not valid (any more)').waitFor()

      expect(names).toEqual(['Sign out', 'Download all', 'Back', 'Next'])
      expect(await page.evaluate<number>('sessionStorage.length')).toBe(0)
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'forgets a sign-in that still waits once another token signs in',
    async () => {
      await using service = await startService(transport)
      const { text: other } = await service.createToken({ user: 'other' })
      await service.create({ id: 1, name: 'Fern' })
      await service.create({ id: 1, name: 'Ivy' }, { token: other })
      const { page } = await (await browser()).open()
      const held = Promise.withResolvers<void>()
      await page.route('**/plants/none', async (route) => {
        if (route.request().headers().authorization === `Bearer ${service.token}`) await held.promise
        await route.continue()
      })

      await page.goto(urlOf(service))
      await signIn(page, service.token)
      await signIn(page, other)
      await page.getByText('Ivy').waitFor()
      const late = page.waitForResponse((response) => response.url().endsWith('/plants/none'))
      held.resolve()
      await (await late).finished()
      await button(page, 'Delete plant 1').click()
      await status(page).getByText('Deleted 1 plant.').waitFor()

      expect(await page.evaluate<string[]>('Object.values(sessionStorage)')).toEqual([other])
      expect([await service.names(), await service.names(other)]).toEqual([['Fern'], []])
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'keeps what was typed while it is offline, is refused for a while, or the server is busy',
    async () => {
      await using service = await startService(transport, {
        rateLimit: { requests: 60, periodMs: 3_600_000 },
      })
      const { page } = await (await browser()).open()
      const add = async (id: string, name: string) => {
        await field(page, 'Id').fill(id)
        await field(page, 'Name').fill(name)
        await button(page, 'Add').click()
      }
      const typed = () => Promise.all([field(page, 'Id').inputValue(), field(page, 'Name').inputValue()])
      const added = (name: string) => status(page).getByText(`Added “${name}”.`).waitFor()

      const listed = page.waitForResponse((response) => response.url().includes('/plants?limit='))
      await page.goto(urlOf(service))
      await signIn(page, service.token)
      // Otherwise the list would wait beside the form.
      await (await listed).finished()

      await page.context().setOffline(true)
      await add('1', 'Fern')
      await page.getByText('The server cannot be reached.').first().waitFor()
      await page.getByText('Next try in').first().waitFor()
      const offline = await typed()
      await page.context().setOffline(false)
      await button(page, 'Try now').click()
      await added('Fern')

      const lock = new Database(service.database)
      lock.run('pragma busy_timeout = 5000')
      lock.run('begin immediate')
      await add('2', 'Moss')
      await page.getByText('The server is too busy or shutting down').waitFor()
      const busy = await typed()
      lock.run('rollback')
      lock.close()
      await added('Moss')
      await page.getByRole('cell', { name: 'Moss', exact: true }).waitFor()

      let sent = 0
      while ((await service.list('?limit=0')).status === 200) sent++
      await add('3', 'Aloe')
      await page.getByText('This token has made too many requests').waitFor()
      await page.getByText(/^Next try in 3[0-9]{3} s\.$/).waitFor()
      await button(page, 'Give up').click()
      await page.getByRole('form').getByText('This token has made too many requests').waitFor()
      const refused = await typed()
      const wrong = await page.locator('[aria-invalid]').count()

      expect(sent).toBeLessThan(60)
      expect(wrong).toBe(0)
      expect([offline, busy, refused]).toEqual([
        ['1', 'Fern'],
        ['2', 'Moss'],
        ['3', 'Aloe'],
      ])
      const { text: other } = await service.createToken()
      expect(await service.names(other)).toEqual(['Fern', 'Moss'])
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'shows hostile names and tags as text',
    async () => {
      await using service = await startService(transport)
      const plants = Array.from({ length: IS_LONG ? 300 : 2 * HOSTILE.length }, (_, index) => ({
        id: index,
        ...hostile(index),
      }))
      for (const plant of plants) expect((await service.create(plant)).status).toBe(200)
      const { page, requests, errors, violations } = await (await browser()).open({
        viewport: { width: 390, height: 844 },
      })
      page.on('dialog', (dialog) => errors.push(dialog.message()))

      await page.goto(urlOf(service))
      await signIn(page, service.token)
      const shown: (readonly string[])[] = []
      for (let number = 1; shown.length < plants.length; number++) {
        await page.getByText(`Page ${number}`, { exact: true }).waitFor()
        await page.getByRole('checkbox', { name: String(shown.length), exact: true }).waitFor()
        shown.push(...(await rows(page)))
        if (shown.length < plants.length) await button(page, 'Next').click()
      }

      expect(shown).toEqual(plants.map(({ id, name, tag }) => [String(id), name, tag]))
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(390)
      expect(await page.evaluate<unknown>('globalThis.hostile')).toBeUndefined()
      expect(withoutRefusals(errors)).toEqual([])
      expect(await violations()).toEqual([])
      expect(requests.filter((request) => !request.includes(` ${urlOf(service)}`))).toEqual([])
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'has a column and an input for each field of the server, and a fourth one fits on a phone',
    async () => {
      await using service = await startService(transport)
      await service.create(`{"id":${LARGE[2]},"name":"Monstera deliciosa","tag":"evergreen"}`)
      const { page } = await (await browser()).open({ viewport: { width: 375, height: 812 } })
      /** Answers as a server whose plants have one field more. */
      const add = (path: string, text: string, replacement: string) =>
        page.route(path, async (route) => {
          const response = await route.fetch()
          await route.fulfill({ response, body: (await response.text()).replace(text, replacement) })
        })
      await add(urlOf(service), '"id name tag?"', '"id name tag? light?"')
      await add('**/plants?*', '"tag":"evergreen"', '"tag":"evergreen","light":"half shade"')

      await page.goto(urlOf(service))
      await signIn(page, service.token)
      await page.getByRole('cell', { name: 'half shade' }).waitFor()
      const columns = await page.getByRole('columnheader').allTextContents()
      const width = await page.evaluate<number>('document.documentElement.scrollWidth')
      await field(page, 'Id').fill('2')
      await field(page, 'Name').fill('Moss')
      await field(page, 'Light (optional)').fill('north')
      const sent = page.waitForRequest((request) => request.method() === 'POST')
      await button(page, 'Add').click()
      await status(page).getByText('Added “Moss”.').waitFor()
      await page.unrouteAll({ behavior: 'ignoreErrors' })

      expect([columns, width]).toEqual([['Id', 'Name', 'Tag', 'Light'], 375])
      expect((await sent).postData()).toBe('{"id":2,"name":"Moss","light":"north"}')
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'works behind a path prefix, as the documentation does, which does not get the token of the tab',
    async () => {
      await using service = await startService(transport)
      await service.create({ id: 1, name: 'Fern' })
      using proxy = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch(request) {
          const { pathname, search } = new URL(request.url)
          if (!pathname.startsWith('/garden/')) return new Response(null, { status: 400 })
          const target = urlOf(service).slice(0, -1) + pathname.slice('/garden'.length) + search
          return fetch(new Request(target, request), { decompress: false })
        },
      })
      const garden = new URL('garden/', proxy.url).href
      const { page, requests } = await (await browser()).open()
      const authorizations: (string | undefined)[] = []

      await page.goto(garden)
      await signIn(page, service.token)
      await page.getByText('Fern').waitFor()
      page.on('request', (request) => authorizations.push(request.headers().authorization))
      await page.getByRole('link', { name: 'API' }).click()
      await page.getByRole('button', { name: /Test Request.*get .plants.$/i }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('button', { name: /^Send/ }).first().click()
      // The library sends a line without a token.
      await dialog.getByText('40102').first().waitFor()

      expect(requests.filter((request) => !request.includes(` ${garden}`))).toEqual([])
      expect(requests).toContain(`GET ${garden}plants?limit=20&include=id`)
      expect(authorizations.filter((line) => line?.includes(service.token))).toEqual([])
    },
    BROWSER_TIMEOUT_MS,
  )
})

test.skipIf(lacks(CHROMIUM))(
  'a plant that is sent while the server restarts is added, and is kept in the form until then',
  async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const first = await serve(database)
    const { page } = await (await browser()).open()

    await page.goto(first.url)
    await signIn(page, token)
    await field(page, 'Id').fill('1')
    await field(page, 'Name').fill('Fern')
    await first.end()
    await button(page, 'Add').click()
    await page.getByText('The server cannot be reached.').waitFor()
    const typed = await field(page, 'Name').inputValue()
    await using second = await serve(database, ['--listen', `127.0.0.1:${first.port}`])
    await button(page, 'Try now').click()
    await status(page).getByText('Added “Fern”.').waitFor()

    expect(typed).toBe('Fern')
    expect(await (await second.request('GET', '/plants', { token })).json()).toEqual([{ name: 'Fern' }])
  },
  BROWSER_TIMEOUT_MS,
)

testLong(
  'a million plants leave the memory of the tab bounded',
  async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    addPlants(database, 1_000_000)
    await using server = await serve(database)
    const { page } = await (await browser()).open()
    const session = await page.context().newCDPSession(page)
    const heapBytes = async () => {
      await session.send('HeapProfiler.collectGarbage')
      return (await session.send('Runtime.getHeapUsage')).usedSize
    }

    await page.goto(server.url)
    await signIn(page, token)
    await page.getByText('Monstera 50', { exact: true }).waitFor()
    const before = await heapBytes()
    for (let number = 2; number <= 100; number++) {
      await button(page, 'Next').click()
      await page.getByText(`Monstera ${number * 50}`, { exact: true }).waitFor()
    }
    const walked = await heapBytes()
    const downloading = page.waitForEvent('download', { timeout: 300_000 })
    await button(page, 'Download all').click()
    const path = await (await downloading).path()
    const downloaded = await heapBytes()

    const lines = (await Bun.file(path).text()).split('\n')
    console.log(`heap: ${[before, walked, downloaded].map((bytes) => Math.round(bytes / 1024)).join(', ')} KiB`)
    expect(lines.length).toBe(1_000_001)
    expect(JSON.parse(lines.at(-2) ?? '')).toEqual({ id: 1_000_000, name: 'Monstera 1000000', tag: 'evergreen' })
    expect(Math.max(walked, downloaded) - before).toBeLessThan(HEAP_GROWTH_MAX_BYTES)
  },
  600_000,
)
