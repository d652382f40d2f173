import { describe, expect } from 'bun:test'
import { IS_LONG } from '../../support/long.ts'
import { addPlants } from '../../support/many-plants.ts'
import { until } from '../../support/until.ts'
import { HOSTILE_TEXTS, hostile } from '../support/hostile.ts'
import { change, pageTests, urlOf, withoutRefusals } from '../support/page.ts'
import { looksAt, screensFor } from '../support/screens.ts'

const { testPage, testInChromium } = pageTests()

const SCREENS = screensFor('390 px, dark')

/** How much a page may grow while it shows and downloads a million plants, which have 60 MB. */
const HEAP_GROWTH_MAX_BYTES = 5 * 1024 ** 2

const LARGE = ['-9223372036854775808', '9007199254740993', '9223372036854775807']

describe.concurrent('the page in a browser', () => {
  for (const { background, ...screen } of SCREENS)
    testInChromium(
      `signs in, shows, adds, deletes and restores plants, and signs out, at ${screen.name}`,
      async (begin) => {
        const { service, page, requests, errors, violations, ui } = await begin({ screen, isClosed: true })
        const { look, picture, problems } = looksAt(page, screen)

        await page.goto(urlOf(service))
        await look('start')
        await ui.see('The operator of this server makes one')
        await ui.signIn('plst_wrong')
        await page.getByRole('alert').getByText('The server does not accept this token. Check that you have').waitFor()
        await look('refused')
        await ui.signIn(service.token)
        await ui.see('You have no plants yet.')
        await look('empty')
        await ui.click('Add your first plant')
        await until('an id is suggested', async () => (await ui.field('Id').inputValue()) !== '')
        await ui.send({ Id: '7', Name: ' ' })
        await ui.see('Give the plant a name, with at least one letter.')
        await ui.send({ Id: '5.5', Name: 'Moss' })
        await ui.see('The id is a whole number, like 4')
        await ui.send({ Id: '9223372036854775808' })
        await ui.see('The id is too far from 0')
        await ui.send({ Id: '' })
        await ui.see('Give the plant an id')
        await ui.send({ Id: '9007199254740995', 'Tag (optional)': 'shade' })
        await ui.told('Added “Moss” (shade).')
        const left = await ui.field('Name').inputValue()
        for (const id of LARGE) await service.create(`{"id":${id},"name":"Exact ${id}"}`)
        addPlants(service.database, 60)
        await service.create({ id: 0, name: 'مرحبا', tag: 'שלום' })
        await ui.send({ Id: '2', Name: 'Ivy' })
        await ui.see('You have a plant with this id already, “Monstera 2” (evergreen). Choose another id.')
        const wrong = await page.evaluate<string>('document.querySelector("[aria-invalid]").name')
        const stale = await ui.status().textContent()
        await look('taken')
        await ui.click('Close')
        await page.reload()
        await ui.see('Exact -9223372036854775808')
        const shown = await page.content()
        const idLines = await page.evaluate<number>(
          `((range) => { range.selectNodeContents(document.querySelector('td.id')); return range.getClientRects().length })(document.createRange())`,
        )
        await look('plants')

        await ui.deletes(2, '“Monstera 2” (evergreen)')
        await look('deleted')
        await ui.undoes('“Monstera 2” (evergreen)')
        await page.getByRole('checkbox', { name: 'Select plant 3', exact: true }).check()
        await page.getByRole('checkbox', { name: 'Select plant 4', exact: true }).check()
        await look('selected')
        await ui.click('Delete selected')
        await ui.told('Deleted 2 plants.')
        expect(await ui.focusedRow()).toBe('5')
        await look('deleted plants')
        await ui.undoes('2 plants')
        await until('the page is read again', async () => (await ui.rows()).length === 50)
        const first = await ui.rows()
        await ui.link('Next').click()
        await ui.row(LARGE[2] ?? '').waitFor()
        const second = await ui.rows()
        await ui.search().fill('EXACT 9007')
        const filtered = await ui.rows()
        await look('filtered')
        await ui.search().fill('Yucca')
        await ui.see('No plant here contains “Yucca”.')
        await look('without a match')
        await ui.see('On all pages: 0 plants with “Yucca” among 65.')
        await ui.click('Show all')
        await page.getByRole('link', { name: `Exact ${LARGE[1]}` }).click()
        await ui.button('Delete').waitFor()
        await look('one plant')
        await page.keyboard.press('?')
        await page.getByRole('dialog').waitFor()
        await look('keys')
        await page.keyboard.press('Escape')
        await ui.click('Upload')
        await ui.click('Edit')
        await look('edit')
        await change(service, LARGE[1] ?? '', 'Ficus')
        await ui.send({ Name: 'Fern' }, 'Store the change')
        await ui.see('This plant has changed')
        await look('conflict')
        await page.getByRole('form').getByRole('button', { name: 'Close' }).click()
        await ui.choose('id,name,tag\n0,مرحبا,שלום\n0,Aloe,\nx,Aloe,\n')
        await ui.see('Compared: 0 new, 0 changed, 1 equal, 2 refused.')
        await look('uploaded')
        await ui.onNext('GET', `/plants/${LARGE[1]}`, (route) =>
          route.fulfill({ status: 429, headers: { 'retry-after': '60' }, json: { error: 42901, message: 'no more' } }),
        )
        await ui.click('Refresh')
        await page.locator('.pause').waitFor()
        await look('pause')
        await ui.tryNow()
        await page.goto(`${urlOf(service)}#/plants/99`)
        await ui.see('You have no plant with this id.')
        await look('no such plant')
        await page.emulateMedia({ media: 'print' })
        await page.setViewportSize({ width: 794, height: 1123 }) // A4
        await page.goto(urlOf(service))
        await page.getByText('Monstera 5').first().waitFor()
        await picture('on paper')
        const paper = await page.evaluate<string>('document.body.innerText')
        await page.emulateMedia({ media: null })
        const lines = await Bun.file(await ui.downloaded()).text()
        const listed = await service.list('?include=id')
        await ui.click('Sign out')
        await page.getByLabel('Access token').waitFor()

        expect([wrong, left, stale, idLines]).toEqual(['id', '', '', 1])
        expect(paper).toMatch(/This is one page of a longer list\.$/)
        expect(shown).not.toContain(service.token)
        expect(filtered).toEqual([['9007199254740993', 'Exact 9007199254740993', '']])
        expect([first.length, first.concat(second).length]).toEqual([50, 65])
        expect(lines).toBe(listed.text.slice(1, -1).replaceAll('},{', '}\n{').concat('\n'))
        expect(first.concat(second).map(([id]) => id)).toEqual(
          [...lines.matchAll(/^\{"id":(-?\d+)/gm)].map(([, id]) => id),
        )
        expect(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).toBe(background)
        expect(problems).toEqual([])
        expect(withoutRefusals(errors)).toEqual([])
        expect(await violations()).toEqual([])
        expect(requests.filter((request) => !/^\w+ (?:blob:)?http:\/\/127\.0\.0\.1:/.test(request))).toEqual([])
      },
    )

  testPage('shows hostile names and tags as text', async (begin) => {
    const plants = Array.from({ length: IS_LONG ? 300 : 2 * HOSTILE_TEXTS }, (_, id) => ({ id, ...hostile(id) }))
    const start = { plants, screen: { viewport: { width: 390, height: 844 } }, isClosed: true }
    const { service, page, requests, errors, violations, ui } = await begin(start)
    page.on('dialog', (dialog) => errors.push(dialog.message()))

    await ui.visit(service)
    const shown: (readonly string[])[] = []
    for (let number = 1; shown.length < plants.length; number++) {
      await page.getByText(`Page ${number}`, { exact: true }).waitFor()
      await ui.row(shown.length).waitFor()
      shown.push(...(await ui.rows()))
      if (shown.length < plants.length) await ui.link('Next').click()
    }
    const width = await ui.scrollWidth()
    await page.goto(`${urlOf(service)}#/plants/0`)
    await page.getByRole('heading', { name: plants[0]?.name ?? '' }).waitFor()
    await ui.click('Delete')
    await ui.told(plants[0]?.name ?? '')

    const cut = (text: string) => text.replace(/^(x{600})x+$/, '$1…')
    const invisible = ['', ' ', '\u0085\u2028\u2029', '\u200b\u3164']
    const asShown = (text: string) => (invisible.includes(text) ? '(invisible text)' : cut(text))
    expect(shown).toEqual(plants.map(({ id, name, tag }) => [String(id), asShown(name), tag && asShown(tag)]))
    expect(width).toBe(390)
    expect(await page.evaluate<unknown>('globalThis.hostile')).toBeUndefined()
    expect(withoutRefusals(errors)).toEqual([])
    expect(await violations()).toEqual([])
    expect(requests.filter((request) => !request.includes(` ${urlOf(service)}`))).toEqual([])
  })

  testInChromium(
    'says nothing wrong over a line of 20 kB/s that takes 2 s',
    async (begin) => {
      const { service, page, ui } = await begin({ plants: 120, screen: {}, isClosed: true })
      const said = await ui.recordTexts(['no plants', 'No plant', 'cannot be reached', 'could not'])
      const session = await page.context().newCDPSession(page)
      const line = { offline: false, latency: 2000, downloadThroughput: 20_000, uploadThroughput: 20_000 }
      await session.send('Network.enable')
      await session.send('Network.emulateNetworkConditions', line)

      await ui.visit(service)
      await ui.see('Loading your plants…')
      await ui.row(50).waitFor()
      const shown = async () => [await page.getByText(/^Page \d$/).textContent(), (await ui.names())[0]]
      const pages = [await shown()]
      for (const number of [2, 3]) {
        await ui.link('Next').click()
        pages.push(await shown())
        await page.getByText(`Page ${number}`, { exact: true }).waitFor()
        pages.push(await shown())
      }
      await ui.deletes(101, '“Monstera 101”')
      await ui.undoes('“Monstera 101”')

      const [first, second, third] = [1, 2, 3].map((number) => [`Page ${number}`, `Monstera ${number * 50 - 49}`])
      expect(pages).toEqual([first, first, second, second, third].map((each) => each ?? []))
      expect(await said()).toEqual([])
    },
    { isLong: true },
  )
})

testInChromium(
  'a million plants leave the memory of the tab bounded',
  async (begin) => {
    const { page, ui } = await begin({ plants: 1_000_000, screen: {} })
    const session = await page.context().newCDPSession(page)
    const heaps: number[] = []
    const measureHeap = async () => {
      await session.send('HeapProfiler.collectGarbage')
      heaps.push((await session.send('Runtime.getHeapUsage')).usedSize)
    }
    const within = { timeout: 300_000 }

    await page.getByText('Monstera 50', { exact: true }).waitFor()
    await measureHeap()
    for (let number = 2; number <= 100; number++) {
      await ui.link('Next').click()
      await page.getByText(`Monstera ${number * 50}`, { exact: true }).waitFor()
    }
    await measureHeap()
    await ui.search().fill('9999')
    await ui.click('Search the rest')
    await page.getByText('On all pages: 280 plants with “9999” among 1,000,000.').waitFor(within)
    await ui.click('Show all')
    await measureHeap()
    await page.getByText('Download', { exact: true }).click()
    const downloading = page.waitForEvent('download', within)
    await ui.click('JSON Lines, for programs')
    const path = await (await downloading).path()
    await measureHeap()

    const lines = (await Bun.file(path).text()).split('\n')
    console.log(`heap: ${heaps.map((bytes) => Math.round(bytes / 1024)).join(', ')} KiB`)
    expect(lines.length).toBe(1_000_001)
    expect(JSON.parse(lines.at(-2) ?? '')).toEqual({ id: 1_000_000, name: 'Monstera 1000000', tag: 'evergreen' })
    expect(Math.max(...heaps) - (heaps[0] ?? 0)).toBeLessThan(HEAP_GROWTH_MAX_BYTES)
  },
  { isLong: true },
)
