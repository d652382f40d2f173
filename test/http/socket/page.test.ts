import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { testLong } from '../../fault/rounds.ts'
import { serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { IS_LONG } from '../../support/long.ts'
import { addPlants } from '../../support/many-plants.ts'
import { lacks } from '../../support/requirement.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { BROWSER_TIMEOUT_MS, CHROMIUM } from '../support/browser.ts'
import { HOSTILE_TEXTS, hostile } from '../support/hostile.ts'
import {
  accessibilityProblems,
  button,
  downloaded,
  field,
  focusedRow,
  names,
  recordTexts,
  row,
  rows,
  scrollWidth,
  search,
  send,
  sharedBrowser,
  signIn,
  smallTargets,
  status,
  stored,
  testPage,
  told,
  urlOf,
  withoutRefusals,
} from '../support/page.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const browser = sharedBrowser()

const LIGHT = { colorScheme: 'light', background: 'rgb(241, 245, 240)' } as const
const DARK = { colorScheme: 'dark', background: 'rgb(13, 20, 16)' } as const
/** In CSS pixels. A screen of 1440 pixels has 720 at a zoom of 200 %. */
const WIDTHS = [375, 720, 820, 1440]
/** Narrower screens show each plant as a card, and have buttons for thumbs. */
const PHONE_MAX_PX = 640

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

/** How much a page may grow while it shows and downloads a million plants, which have 60 MB. */
const HEAP_GROWTH_MAX_BYTES = 5 * 1024 ** 2

const LARGE = ['-9223372036854775808', '9007199254740993', '9223372036854775807']

describe.concurrent.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('the page in a browser, $name', (transport) => {
  test.each(SCREENS)(
    'signs in, shows, adds, deletes and restores plants, and signs out, at $name',
    async ({ name, background, ...screen }) => {
      await using service = await startService(transport)
      const { page, requests, errors, violations } = await browser.open({
        ...screen,
        only: urlOf(service).slice(0, -1),
      })
      const problems: string[] = []
      const look = async (moment: string) => {
        if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}, ${moment}.png`) })
        const small = screen.viewport.width < PHONE_MAX_PX ? await smallTargets(page) : []
        const wide = (await scrollWidth(page)) === screen.viewport.width ? [] : ['scrolls to the side']
        for (const each of [...(await accessibilityProblems(page)), ...small, ...wide])
          problems.push(`${moment}: ${each}`)
      }

      await page.goto(urlOf(service))
      await look('start')
      await page.getByText('The operator of this server makes one').waitFor()
      await signIn(page, 'plst_wrong')
      await page.getByRole('alert').getByText('The server does not accept this token. Check that you have').waitFor()
      await look('refused')
      await signIn(page, service.token)
      await page.getByText('You have no plants yet.').waitFor()
      await look('empty')
      await button(page, 'Add your first plant').click()
      await send(page, { Id: '7', Name: ' ' })
      await page.getByText('Give the plant a name, with at least one letter.').waitFor()
      await send(page, { Id: '5.5', Name: 'Moss' })
      await page.getByText('The id is a whole number, like 4').waitFor()
      await send(page, { Id: '9223372036854775808' })
      await page.getByText('The id is too far from 0').waitFor()
      await send(page, { Id: '' })
      await page.getByText('Give the plant an id').waitFor()
      await send(page, { Id: '9007199254740995', 'Tag (optional)': 'shade' })
      await told(page, 'Added “Moss”.')
      const left = await field(page, 'Name').inputValue()
      for (const id of LARGE) await service.create(`{"id":${id},"name":"Exact ${id}"}`)
      addPlants(service.database, 60)
      await service.create({ id: 0, name: 'مرحبا', tag: 'שלום' })
      await send(page, { Id: '2', Name: 'Ivy' })
      await page
        .getByText('You have a plant with this id already, “Monstera 2” (evergreen). Choose another id.')
        .waitFor()
      const wrong = await page.evaluate<string>('document.querySelector("[aria-invalid]").name')
      const stale = await status(page).textContent()
      await look('taken')
      await button(page, 'Close').click()
      await page.reload()
      await page.getByText('Exact -9223372036854775808').waitFor()
      const shown = await page.content()
      const idLines = await page.evaluate<number>(
        `((range) => { range.selectNodeContents(document.querySelector('td.id')); return range.getClientRects().length })(document.createRange())`,
      )
      await look('plants')

      await button(page, 'Delete plant 2').click()
      await told(page, 'Deleted “Monstera 2” (evergreen).')
      await look('deleted')
      const deleted = await service.get(2)
      await button(page, 'Undo the delete of plant 2').click()
      await told(page, 'Restored “Monstera 2” (evergreen).')
      const restored = await service.get(2)
      await page.getByRole('checkbox', { name: 'Select plant 3', exact: true }).check()
      await page.getByRole('checkbox', { name: 'Select plant 4', exact: true }).check()
      await look('selected')
      await button(page, 'Delete selected').click()
      await told(page, 'Deleted 2 plants.')
      expect(await focusedRow(page)).toBe('5')
      const gone = [await service.get(3), await service.get(4)]
      await page.getByText('Deleted in this tab: 2 plants').click()
      await look('deleted plants')
      await button(page, 'Restore all').click()
      await told(page, 'Restored 2 plants.')
      await until('the page is read again', async () => (await rows(page)).length === 50)
      const first = await rows(page)
      await button(page, 'Next').click()
      await row(page, LARGE[2] ?? '').waitFor()
      const second = await rows(page)
      await search(page).fill('EXACT 9007')
      const filtered = await rows(page)
      await look('filtered')
      await search(page).fill('Yucca')
      await page.getByText('No plant here contains “Yucca”.').waitFor()
      await look('without a match')
      await button(page, 'Search all pages').click()
      await page.getByText('On all pages: 0 plants with “Yucca” among 65.').waitFor()
      await button(page, 'Show all').click()
      await row(page, LARGE[1] ?? '')
        .getByRole('link')
        .click()
      await button(page, 'Delete').waitFor()
      await look('one plant')
      await page.keyboard.press('?')
      await page.getByRole('dialog').waitFor()
      await look('keys')
      await page.keyboard.press('Escape')
      await button(page, 'Upload').click()
      await button(page, 'Edit').click()
      await look('edit')
      const lines = await Bun.file(await downloaded(page)).text()
      const listed = await service.list('?include=id')
      await button(page, 'Sign out').click()
      await page.getByLabel('Access token').waitFor()

      expect([wrong, left, stale, idLines]).toEqual(['id', '', '', 1])
      expect(shown).not.toContain(service.token)
      expect([deleted, ...gone].map(({ status }) => status)).toEqual([404, 404, 404])
      expect(restored.body).toEqual({ name: 'Monstera 2', tag: 'evergreen' })
      expect(filtered).toEqual([['9007199254740993', 'Exact 9007199254740993', '']])
      expect([first.length, first.concat(second).length]).toEqual([50, 65])
      expect(lines).toBe(listed.text.slice(1, -1).replaceAll('},{', '}\n{').concat('\n'))
      expect(first.concat(second).map(([id]) => id)).toEqual(
        [...lines.matchAll(/^\{"id":(-?\d+)/gm)].map(([, id]) => id),
      )
      expect(await stored(page)).toEqual(['{}', '{}'])
      expect(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).toBe(background)
      expect(problems).toEqual([])
      expect(withoutRefusals(errors)).toEqual([])
      expect(await violations()).toEqual([])
      expect(requests.filter((request) => !/^\w+ (?:blob:)?http:\/\/127\.0\.0\.1:/.test(request))).toEqual([])
    },
    SCREENS.length * BROWSER_TIMEOUT_MS,
  )

  testPage('shows hostile names and tags as text', async () => {
    await using service = await startService(transport)
    const plants = Array.from({ length: IS_LONG ? 300 : 2 * HOSTILE_TEXTS }, (_, id) => ({ id, ...hostile(id) }))
    for (const plant of plants) expect((await service.create(plant)).status).toBe(200)
    const { page, requests, errors, violations } = await browser.open({
      viewport: { width: 390, height: 844 },
    })
    page.on('dialog', (dialog) => errors.push(dialog.message()))

    await page.goto(urlOf(service))
    await signIn(page, service.token)
    const shown: (readonly string[])[] = []
    for (let number = 1; shown.length < plants.length; number++) {
      await page.getByText(`Page ${number}`, { exact: true }).waitFor()
      await row(page, shown.length).waitFor()
      shown.push(...(await rows(page)))
      if (shown.length < plants.length) await button(page, 'Next').click()
    }
    const width = await scrollWidth(page)
    await page.goto(`${urlOf(service)}#/plants/0`)
    await page.getByRole('heading', { name: plants[0]?.name ?? '' }).waitFor()
    await button(page, 'Delete').click()
    await told(page, plants[0]?.name ?? '')

    const asShown = (name: string) => (name.trim() === '' ? `“${name}”` : name)
    expect(shown).toEqual(plants.map(({ id, name, tag }) => [String(id), asShown(name), tag]))
    expect(width).toBe(390)
    expect(await page.evaluate<unknown>('globalThis.hostile')).toBeUndefined()
    expect(withoutRefusals(errors)).toEqual([])
    expect(await violations()).toEqual([])
    expect(requests.filter((request) => !request.includes(` ${urlOf(service)}`))).toEqual([])
  })

  testLong(
    'says nothing wrong over a line of 20 kB/s that takes 2 s',
    async () => {
      await using service = await startService(transport)
      addPlants(service.database, 120)
      const { page } = await browser.open()
      const said = await recordTexts(page, ['no plants', 'No plant', 'cannot be reached', 'could not'])
      const session = await page.context().newCDPSession(page)
      await session.send('Network.enable')
      await session.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 2000,
        downloadThroughput: 20_000,
        uploadThroughput: 20_000,
      })

      await page.goto(urlOf(service))
      await signIn(page, service.token)
      await page.getByText('Loading your plants…').waitFor()
      await row(page, 50).waitFor()
      const pages: unknown[] = []
      for (const number of [1, 2, 3]) {
        await page.getByText(`Page ${number}`, { exact: true }).waitFor()
        pages.push((await names(page))[0])
        if (number < 3) await button(page, 'Next').click()
        else break
        pages.push(await page.getByText(/^Page \d$/).textContent(), (await names(page))[0])
      }
      await button(page, 'Delete plant 101').click()
      await told(page, 'Deleted “Monstera 101”.')
      await button(page, 'Undo the delete of plant 101').click()
      await told(page, 'Restored “Monstera 101”.')

      expect(pages).toEqual([
        'Monstera 1',
        'Page 1',
        'Monstera 1',
        'Monstera 51',
        'Page 2',
        'Monstera 51',
        'Monstera 101',
      ])
      expect(await said()).toEqual([])
    },
    2 * BROWSER_TIMEOUT_MS,
  )
})

testLong(
  'a million plants leave the memory of the tab bounded',
  async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    addPlants(database, 1_000_000)
    await using server = await serve(database)
    const { page } = await browser.open()
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
    await search(page).fill('9999')
    await button(page, 'Search all pages').click()
    await page.getByText('On all pages: 280 plants with “9999” among 1,000,000.').waitFor({ timeout: 300_000 })
    await button(page, 'Show all').click()
    await button(page, 'Count all plants').click()
    await page.getByText('1,000,000 plants in all.').waitFor({ timeout: 300_000 })
    const searched = await heapBytes()
    const downloading = page.waitForEvent('download', { timeout: 300_000 })
    await button(page, 'Download all').click()
    const path = await (await downloading).path()
    const downloaded = await heapBytes()

    const lines = (await Bun.file(path).text()).split('\n')
    const heaps = [before, walked, searched, downloaded]
    console.log(`heap: ${heaps.map((bytes) => Math.round(bytes / 1024)).join(', ')} KiB`)
    expect(lines.length).toBe(1_000_001)
    expect(JSON.parse(lines.at(-2) ?? '')).toEqual({ id: 1_000_000, name: 'Monstera 1000000', tag: 'evergreen' })
    expect(Math.max(...heaps) - before).toBeLessThan(HEAP_GROWTH_MAX_BYTES)
  },
  1_200_000,
)
