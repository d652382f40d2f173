import { describe, expect, test } from 'bun:test'
import { addPlants } from '../../support/many-plants.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { CHROMIUM } from '../support/browser.ts'
import {
  button,
  downloaded,
  row,
  scrollWidth,
  search,
  send,
  sharedBrowser,
  signIn,
  stored,
  testPage,
  told,
  urlOf,
} from '../support/page.ts'
import { addressesIn, assetsIn } from '../support/pages.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const browser = sharedBrowser()

/** How much the page may load, compressed. */
const PAGE_MAX_BYTES = 45_000

describe.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('the way to the page, $name', (transport) => {
  testPage('keeps a token for the tab, or for the browser if one ticks that, until one signs out', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { page } = await browser.open()
    const openTab = async () => {
      const tab = await page.context().newPage()
      await tab.goto(urlOf(service))
      await tab.getByText(/Fern|Access token/).waitFor()
      return { tab, isSignedIn: (await row(tab, 1).count()) === 1 }
    }

    await page.goto(urlOf(service))
    await page.getByText('Either way the browser keeps the token on its disk until you sign out').waitFor()
    await signIn(page, service.token)
    await row(page, 1).waitFor()
    const ofTab = await stored(page)
    const beside = await openTab()
    await button(page, 'Delete plant 1').click()
    await button(page, 'Undo the delete of plant 1').click()
    await told(page, 'Restored “Fern”.')
    await button(page, 'Sign out').click()
    await page.getByRole('checkbox', { name: 'Stay signed in on this browser' }).check()
    await signIn(page, service.token)
    await row(page, 1).waitFor()
    const ofBrowser = await stored(page)
    const later = await openTab()
    await button(later.tab, 'Sign out').click()
    await later.tab.getByLabel('Access token').waitFor()

    expect(ofTab.map((text) => text.includes(service.token))).toEqual([true, false])
    expect(ofBrowser.map((text) => text.includes(service.token))).toEqual([false, true])
    expect([beside.isSignedIn, later.isSignedIn]).toEqual([false, true])
    expect(await stored(later.tab)).toEqual(['{}', '{}'])
  })

  testPage('forgets a sign-in that still waits once another token signs in', async () => {
    await using service = await startService(transport)
    const { text: other } = await service.createToken({ user: 'other' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 1, name: 'Ivy' }, { token: other })
    const { page } = await browser.open()
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
    await told(page, 'Deleted “Ivy”.')

    const kept = JSON.stringify(await stored(page))
    expect([kept.includes(other), kept.includes(service.token)]).toEqual([true, false])
    expect([await service.names(), await service.names(other)]).toEqual([['Fern'], []])
  })

  testPage('a read token sees only what it can do, does all of that, and is signed out once revoked', async () => {
    await using service = await startService(transport)
    addPlants(service.database, 60)
    const { text: token, id } = await service.createToken({ scope: 'read' })
    const { page } = await browser.signedIn(service, { token })
    const controls = async () => {
      const all = page.getByRole('button').or(page.getByRole('textbox')).or(page.getByRole('checkbox'))
      return [...new Set(await all.allTextContents())]
    }

    await page.getByText('60 plants in all.').waitFor()
    const ofList = await controls()
    await button(page, 'Name').click()
    await search(page).fill('era 6')
    await button(page, 'Search all pages').click()
    await page.getByText('On all pages: 2 plants with “era 6” among 60.').waitFor()
    const lines = await Bun.file(await downloaded(page)).text()
    await row(page, 60).focus()
    await page.keyboard.press('Delete')
    await page.keyboard.press('n')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Monstera 60' }).waitFor()
    const ofPlant = await controls()
    await service.store.revokeTokens({ id }, Date.now())
    await until('the token is refused', async () => (await service.list('', { token })).status !== 200)
    await button(page, 'Download all').click()
    await page.getByRole('alert').getByText('The server does not accept this token.').waitFor()

    const around = ['Skip to the plants', 'Sign out']
    expect(ofList).toEqual([...around, 'Id', 'Name', 'Tag', 'evergreen', 'First page', 'Next', 'Download all', 'Keys'])
    expect(ofPlant).toEqual([...around, 'Copy JSON', 'Copy curl', 'Download all', 'Keys'])
    expect(lines.split('\n').length).toBe(61)
    expect((await service.names()).length).toBe(60)
    expect(await page.evaluate<number>('sessionStorage.length')).toBe(0)
  })

  testPage('has a column and an input for each field of the server, and a fourth one fits on a phone', async () => {
    await using service = await startService(transport)
    await service.create(`{"id":9223372036854775807,"name":"Monstera deliciosa","tag":"evergreen"}`)
    const { page } = await browser.open({ viewport: { width: 375, height: 812 } })
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
    await page.getByText('half shade').waitFor()
    const columns = await page.getByRole('columnheader').or(page.locator('th')).allTextContents()
    const width = await scrollWidth(page)
    await button(page, 'New plant').click()
    const sent = page.waitForRequest((request) => request.method() === 'POST')
    await send(page, { Id: '2', Name: 'Moss', 'Light (optional)': 'north' })
    await told(page, 'Added “Moss”.')
    await page.unrouteAll({ behavior: 'ignoreErrors' })

    expect([columns, width]).toEqual([['Id', 'Name', 'Tag', 'Light'], 375])
    expect((await sent).postData()).toBe('{"id":2,"name":"Moss","light":"north"}')
  })

  testPage('works behind a path prefix with the documentation, which gets no token of the tab', async () => {
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
    const { page, requests } = await browser.open()
    const authorizations: (string | undefined)[] = []

    await page.goto(garden)
    await signIn(page, service.token)
    await page.getByRole('link', { name: 'Fern' }).click()
    await page.getByText(`'${garden}plants'`).waitFor()
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
  })

  test('has at most 45 kB in all, compressed', async () => {
    await using service = await startService(transport)
    const load = (path: string) =>
      fetch(urlOf(service) + path, { headers: { accept: 'text/html', 'accept-encoding': 'gzip' }, decompress: false })
    const html = await (await load('')).text()
    const paths = addressesIn(html).filter((address) => address.startsWith('assets/'))
    let bytes = Bun.gzipSync(html).length
    for (const path of paths) bytes += (await (await load(path)).bytes()).length

    expect(assetsIn(html)).toEqual(['icon.svg', 'page.css', 'page.js', 'docs'])
    expect(bytes).toBeLessThanOrEqual(PAGE_MAX_BYTES)
  })
})
