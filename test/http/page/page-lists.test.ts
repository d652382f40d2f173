import { describe, expect } from 'bun:test'
import { until } from '../../support/until.ts'
import { change, pageTests, urlOf, withoutRefusals } from '../support/page.ts'

const { testPage, testInChromium } = pageTests()

describe('lists on the page', () => {
  testPage('a list is loading, empty, without a match or failed, and never falsely empty', async (begin) => {
    const { service, open, ui } = await begin({ isClosed: true })
    const said = await ui.recordTexts(['no plants', 'No plant'])
    const slow = await ui.hold('GET', '/plants')

    await ui.visit(service)
    await slow.begun
    await ui.see('Loading your plants…')
    const early = await said()
    slow.release()
    await ui.see('You have no plants yet.')
    await ui.click('Add your first plant')
    await ui.send({ Name: 'Fern' })
    await ui.told('Added “Fern”.')
    await ui.row(1).waitFor()
    await ui.see('1 plant in all.')
    await ui.search().fill('ivy')
    await ui.see('No plant here contains “ivy”.')
    await ui.click('Show all')
    await ui.row(1).waitFor()

    const { page: otherPage, ui: other } = await open({})
    const saidByOther = await other.recordTexts(['no plants', 'No plant'])
    await otherPage.route('**/plants?*', (route) => route.abort())
    await other.visit(service)
    await other.click('Give up')
    await other.see('The plants could not be loaded: the server cannot be reached.')
    await otherPage.unrouteAll()
    await other.click('Try again')
    await other.row(1).waitFor()

    expect([early, await saidByOther()]).toEqual([[], []])
  })

  testPage('names of 60 kB take three lines of the list and 80 characters of a sentence', async (begin) => {
    const name = '🪴ern '.repeat(7500)
    const plants = Array.from({ length: 50 }, (_, id) => ({ id, name, tag: 'x'.repeat(3000) }))
    const { service, page, ui } = await begin({ plants, screen: { viewport: { width: 390, height: 844 } } })
    const short = '🪴ern '.repeat(16)
    const described = `“${short}…” (${'x'.repeat(80)}…)`

    await ui.row(49).waitFor()
    const inList = await page.evaluate<readonly number[]>(`(() => {
      const cells = [...document.querySelectorAll('tbody bdi')]
      const lines = cells.map((cell) => cell.clientHeight / Number.parseFloat(getComputedStyle(cell).lineHeight))
      return [cells.length, Math.round(Math.max(...lines)), Math.max(...cells.map((cell) => cell.textContent.length))]
    })()`)
    await ui.deletes(3, described)
    const sentence = await ui.status().textContent()
    await ui.row(4).getByRole('link').click()
    await page.getByRole('heading', { name: `${short}…` }).waitFor()
    const whole = await page.locator('.plant dd').allTextContents()

    expect(inList).toEqual([100, 3, 721])
    expect(sentence).toBe(`Deleted ${described}.`)
    expect(whole).toEqual(['4', name, 'x'.repeat(3000)])
    expect((await service.names()).length).toBe(49)
  })

  testPage('the number of a page follows its rows while the server is slow or away', async (begin) => {
    const { page, ui } = await begin({ plants: 150 })
    const at = async () => [
      await page.getByText(/^Page \d$/).textContent(),
      (await ui.names())[0],
      await page.evaluate<boolean>('document.querySelector("section.loading") !== null'),
    ]

    await ui.row(50).waitFor()
    const slow = await ui.hold('GET', '/plants')
    await ui.link('Next').click()
    await slow.begun
    const waiting = await at()
    slow.release()
    await page.getByText('Page 2', { exact: true }).waitFor()
    await ui.see('50 plants, ids 51 to 100')
    const turned = await at()
    const top = Math.round((await page.getByRole('region', { name: 'Plants' }).boundingBox())?.y ?? Number.NaN)
    await page.context().setOffline(true)
    await ui.link('Next').click()
    await ui.see('The server cannot be reached.')
    const away = await at()
    const notice = await page.locator('.pause').boundingBox()
    await page.context().setOffline(false)
    await ui.tryNow()
    await ui.row(150).waitFor()
    const last = await at()
    const lastLinks = await page.getByRole('navigation').getByRole('link').allTextContents()
    // Back undoes pages alone.
    await ui.search().fill('era 1')
    await page.goBack()
    await ui.row(51).waitFor()
    const back = await at()
    await ui.link('Previous').click()
    await ui.row(1).waitFor()

    expect([waiting, turned, away, last, back]).toEqual([
      ['Page 1', 'Monstera 1', true],
      ['Page 2', 'Monstera 51', false],
      ['Page 2', 'Monstera 51', true],
      ['Page 3', 'Monstera 101', false],
      ['Page 2', 'Monstera 51', false],
    ])
    expect(top).toBe(0)
    expect([lastLinks, await page.getByRole('navigation').getByRole('link').allTextContents()]).toEqual([
      ['First page', 'Previous'],
      ['Next'],
    ])
    expect(notice?.y).toBeGreaterThan(0)
    expect((notice?.y ?? 0) + (notice?.height ?? 0)).toBeLessThanOrEqual(page.viewportSize()?.height ?? 0)
  })

  testPage('a step back is told by neither a late answer nor a sign-in that has to end first', async (begin) => {
    const { page, ui } = await begin({ plants: 120 })
    const shown = async () => [await page.getByText(/^Page \d$/).textContent(), (await ui.names())[0]]

    await ui.row(50).waitFor()
    const slow = await ui.hold('GET', '/plants')
    await ui.link('Next').click()
    await slow.begun
    const again = ui.answered(/limit=50&include/)
    await page.goBack()
    await again
    const late = ui.answered(/after=50/)
    slow.release()
    await late
    const first = await shown()
    for (const id of [100, 120]) {
      await ui.link('Next').click()
      await ui.row(id).waitFor()
    }
    const token = await ui.hold('GET', '/token')
    await page.reload({ waitUntil: 'commit' })
    await token.begun
    await page.goBack()
    token.release()
    await ui.row(100).waitFor()

    expect([first, await shown()]).toEqual([
      ['Page 1', 'Monstera 1'],
      ['Page 2', 'Monstera 51'],
    ])
  })

  testPage('a tab that comes back shows its list as it is now, and a search is true after an upload', async (begin) => {
    const { service, page, ui } = await begin({ plants: 60 })
    /** Presses Escape as browsers report it while somebody composes; Safari by the number alone. */
    const press = (init: string) =>
      page.evaluate(`document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true, ...${init} }))`)

    await ui.row(50).waitFor()
    await ui.deletes(3, '“Monstera 3”')
    await ui.row(5).focus()
    await change(service, 2, 'Lily')
    await service.delete(4)
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await ui.row(2).getByText('Lily').waitFor()
    const seen = [await ui.focusedRow(), await ui.row(4).count(), await ui.status().textContent()]
    await ui.search().fill('era 6')
    await ui.see('On all pages: 2 plants with “era 6” among 58.')
    await service.delete(60)
    await ui.click('Refresh')
    await ui.see('On all pages: 1 plant with “era 6” among 57.')
    await ui.click('Upload')
    await ui.choose('id,name\n70,Era 6\n')
    await ui.click('Add 1 plant')
    await ui.see('On all pages: 2 plants with “era 6” among 58.')
    await ui.click('Close')
    // In Chinese one letter is a word.
    await service.create({ id: 61, name: '龟背竹' })
    await ui.search().fill('竹')
    await ui.see('On all pages: 1 plant with “竹” among 59.')
    for (const init of ['{ isComposing: true }', '{ keyCode: 229 }']) await press(init)
    seen.push(await ui.search().inputValue())
    await press('{}')
    await ui.row(50).waitFor()

    expect(seen).toEqual(['5', 0, 'Deleted “Monstera 3”.', '竹'])
    expect(await ui.search().inputValue()).toBe('')
  })

  testInChromium('a print has the plants alone, each column and whole names', async (begin) => {
    const name = 'Monstera deliciosa '.repeat(20).trim()
    const { page, ui } = await begin({ plants: [{ id: 1, name, tag: 'shade' }, 'Ivy'] })
    const printed = () => page.evaluate<string>('document.body.innerText')

    await ui.click('New plant')
    await ui.click('Upload')
    await ui.deletes(2, '“Ivy”')
    await page.emulateMedia({ media: 'print' })
    const list = await printed()
    const cut = await page.evaluate<boolean>(
      `(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)(document.querySelector('td.name bdi'))`,
    )
    await page.emulateMedia({ media: null })
    await ui.row(1).getByRole('link').click()
    await page.getByRole('heading', { name: 'Monstera' }).waitFor()
    await page.emulateMedia({ media: 'print' })
    const plant = await printed()
    await page.emulateMedia({ media: null })

    const lines = (text: string) => text.split(/\s*[\n\t]\s*/)
    expect(lines(list)).toEqual(['Id', 'Name', 'Tag', '1', name, 'shade'])
    expect(lines(plant).slice(1)).toEqual(['Id', '1', 'Name', name, 'Tag', 'shade'])
    expect(cut).toBe(false)
  })

  testPage('the address holds page, filter and plant, and no server gets them', async (begin) => {
    const { service, page, requests, open, ui } = await begin({ plants: 120 })
    const shown = async (of = ui) => [await of.rows(), await of.search().inputValue()]

    await ui.row(50).waitFor()
    await ui.link('Next').click()
    await ui.row(100).waitFor()
    await ui.search().fill('era 95')
    const before = await shown()
    await page.reload()
    await ui.row(95).waitFor()
    const reloaded = await shown()
    const { page: otherPage, ui: other } = await open({})
    await otherPage.goto(page.url())
    await other.signIn(service.token)
    await other.row(95).waitFor()
    const sent = await shown(other)
    await other.row(95).getByRole('link', { name: 'Monstera 95' }).click()
    await otherPage.getByRole('heading', { name: 'Monstera 95' }).waitFor()
    const { hash } = new URL(otherPage.url())
    await otherPage.reload()
    await otherPage.getByRole('heading', { name: 'Monstera 95' }).waitFor()
    await otherPage.goBack()
    await other.row(95).waitFor()
    const returned = await shown(other)
    await otherPage.goForward()
    await otherPage.getByRole('link', { name: 'All plants' }).click()
    await other.row(1).waitFor()

    expect(before).toEqual([[['95', 'Monstera 95', '']], 'era 95'])
    expect([reloaded, sent, returned]).toEqual([before, before, before])
    expect(await otherPage.getByText('Page 1', { exact: true }).count()).toBe(1)
    expect(hash).toBe('#/plants/95')
    expect([...requests, service.logs()].filter((text) => /#|filter|era.95/.test(text))).toEqual([])
  })

  testPage('no text stays behind what changes while the browser translates the page', async (begin) => {
    const { service, page, errors, ui } = await begin({ plants: 60, isClosed: true })
    // As Chrome's translation does it: elements of its own stand in the place of texts.
    await page.addInitScript(`
      const translate = () => {
        const texts = document.createTreeWalker(document.body ?? document, NodeFilter.SHOW_TEXT)
        const found = []
        while (texts.nextNode()) found.push(texts.currentNode)
        for (const text of found) {
          if (text.data.trim() === '' || text.parentNode.localName === 'font') continue
          const fonts = [document.createElement('font'), document.createElement('font')]
          text.replaceWith(fonts[0])
          fonts[0].append(fonts[1])
          fonts[1].textContent = text.data
        }
      }
      new MutationObserver(translate).observe(document, { subtree: true, childList: true, characterData: true })`)
    const stale: string[] = []
    let before: string | undefined
    /** Does something, waits for a text, and expects that the one before it is gone. */
    const shows = async (act: () => Promise<unknown>, text: string) => {
      await act()
      await page.getByText(text, { exact: true }).first().waitFor()
      if (before !== undefined && (await page.getByText(before, { exact: true }).count()) > 0) stale.push(before)
      before = text
    }
    const starts = () => (before = undefined)
    const select = (id: number) => page.getByRole('checkbox', { name: `Select plant ${id}`, exact: true }).check()

    await ui.visit(service)
    await shows(() => ui.row(50).waitFor(), 'Page 1')
    await shows(() => ui.link('Next').click(), 'Page 2')
    await shows(() => ui.link('Previous').click(), 'Page 1')
    starts()
    await shows(() => select(3), '1 plant selected.')
    await shows(() => select(4), '2 plants selected.')
    await shows(() => ui.click('Select none'), 'Monstera 4')
    starts()
    for (const [id, tag] of [
      [1, ''],
      [2, ' (evergreen)'],
    ] as const)
      await shows(() => ui.click(`Delete plant ${id}`), `Deleted “Monstera ${id}”${tag}.`)
    await shows(() => ui.undo().click(), 'Restored 2 plants.')
    starts()
    await shows(() => ui.row(3).waitFor(), 'Monstera 3')
    await ui.click('Edit plant 3')
    await shows(() => ui.send({ Name: 'Lily' }, 'Store the change'), 'Lily')
    starts()
    await ui.click('New plant')
    await shows(() => ui.send({ Id: '3', Name: ' ' }), 'Give the plant a name, with at least one letter.')
    await shows(() => ui.send({ Name: 'Moss' }), 'You have a plant with this id already, “Lily”. Choose another id.')
    starts()
    for (const text of ['x', 'xy']) await shows(() => ui.search().fill(text), `No plant here contains “${text}”.`)
    starts()
    await shows(async () => {}, 'On all pages: 0 plants with “xy” among 60.')

    expect(stale).toEqual([])
    expect(withoutRefusals(errors)).toEqual([])
  })

  testPage(
    'a row opens its plant, shows its buttons under the pointer, and stays there when it is ticked',
    async (begin) => {
      const { page, ui } = await begin({ plants: 5, screen: { viewport: { width: 1280, height: 800 } } })
      const opacity = async (id: number) => {
        await ui.row(id).hover()
        return page.evaluate<readonly string[]>(
          `[2, 3].map((id) => getComputedStyle(document.querySelector('[aria-label="Delete plant ' + id + '"]')).opacity)`,
        )
      }
      const boxOf = (selector: string) => page.locator(selector).first().boundingBox()

      await ui.row(5).waitFor()
      const shown = [await opacity(2), await opacity(3)]
      const [table, sheet, head, cell] = await Promise.all(['table', '.list', 'th >> nth=1', 'td.name'].map(boxOf))
      const boxes = await Promise.all([1, 2, 3, 4].map((at) => boxOf(`tbody label >> nth=${at}`)))
      // No row moves away under the pointer.
      for (const box of boxes) await page.mouse.click((box?.x ?? 0) + 20, (box?.y ?? 0) + 16)
      await page.locator('[aria-live]').getByText('4 plants selected.').waitFor()
      await ui.row(2).locator('.id').click()
      await page.getByRole('heading', { name: 'Monstera 2' }).waitFor()
      await page.evaluate('history.back()')
      await ui.row(2).getByRole('button', { name: 'evergreen' }).click()
      const filter = await ui.search().inputValue()

      expect(shown).toEqual([
        ['1', '0'],
        ['0', '1'],
      ])
      expect(table?.width).toBe((sheet?.width ?? 0) - 2 * 16)
      expect(head?.x).toBe(cell?.x ?? 0)
      expect(filter).toBe('evergreen')
    },
  )

  testInChromium(
    'on a phone the header is a line, a row takes 60 px, and one tap opens or edits a plant',
    async (begin) => {
      const screen = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }
      const { service, page, open, ui } = await begin({ plants: 50, screen })
      const word = 'Donaudampfschifffahrtsgesellschaftskapitän'
      const { text: read } = await service.createToken({ scope: 'read' })
      const topOf = async (place: ReturnType<typeof ui.row>) => Math.round((await place.boundingBox())?.y ?? 0)

      await ui.row(50).waitFor()
      await service.create({ id: 0, name: 'Lavender', tag: word })
      await ui.click('Refresh')
      await ui.row(0).waitFor()
      const step = (await topOf(ui.row(49))) - (await topOf(ui.row(48)))
      const heads = await page.getByRole('columnheader').count()
      const uploadTop = await topOf(ui.button('Upload'))
      const inRow = await ui.row(2).getByRole('button').and(page.locator(':visible')).allTextContents()
      // The tag is no target of its own there.
      await ui.row(2).getByText('evergreen').tap({ force: true })
      await page.getByRole('heading', { name: 'Monstera 2' }).waitFor()
      const height = (await page.locator('header').boundingBox())?.height
      await ui.button('Delete').tap()
      await ui.told('Deleted “Monstera 2” (evergreen).')
      await page.getByRole('link', { name: 'All plants' }).tap()
      await ui.undo().tap()
      await ui.told('Restored “Monstera 2” (evergreen).')
      await ui.button('Edit plant 2').tap()
      await ui.see('Edit this plant')
      const lines = await page.evaluate<number>('document.querySelector(`.chip bdi span`).getClientRects().length')
      const { ui: reader } = await open(screen)
      await reader.visit(service, read)
      const places = await Promise.all(['a', '.id', '.chip'].map((each) => reader.row(2).locator(each).boundingBox()))
      const [name, id, tag] = places.map((box) => box ?? { x: 0, y: 0, width: 0, height: 0 })

      expect([step, heads, inRow, lines]).toEqual([60, 0, ['evergreen', 'Edit'], 1])
      expect(height).toBeLessThan(64)
      // The tag stands behind the id, below the name.
      expect([id?.x, (tag?.x ?? 0) > (id?.x ?? 0) + (id?.width ?? 0), (tag?.y ?? 0) > (name?.y ?? 0)]).toEqual([
        name?.x,
        true,
        true,
      ])
      expect(uploadTop).toBeLessThan(200)
    },
  )

  testPage(
    'rows are one stop of Tab, keys turn pages until one turns them off, and titles name the view',
    async (begin) => {
      const { page, ui } = await begin({ plants: 120 })
      const { keyboard } = page
      const titled = (view: string) =>
        until(`the title is ${view}`, async () => (await page.title()) === `${view} – Plant Store`)
      const turns = async (key: string, number: number) => {
        await keyboard.press(key)
        await page.getByText(`Page ${number}`, { exact: true }).waitFor()
        await titled(`Plants, page ${number}`)
      }
      const stops: string[] = []

      await ui.row(50).waitFor()
      await ui.button('Skip to the plants').focus()
      while (stops.at(-1) !== 'Next' && stops.length < 300) {
        await keyboard.press('Tab')
        stops.push(
          await page.evaluate(
            '(({ ariaLabel, dataset, textContent }) => ariaLabel || dataset.id || textContent)(document.activeElement)',
          ),
        )
      }
      await keyboard.press('Shift+Tab')
      const reached: unknown[] = []
      for (const key of ['End', 'Home', 'PageDown', 'PageUp', 'PageUp', 'End', 'PageDown', 'PageUp', 'PageDown']) {
        await keyboard.press(key)
        reached.push(await ui.focusedRow())
      }
      await keyboard.press(' ')
      await ui.see('1 plant selected.')
      const row = await page.getByRole('row', { selected: true }).getAttribute('aria-label')
      const last = [await ui.focusedRow(), await page.getByRole('checkbox', { name: 'Select plant 50' }).isChecked()]
      await keyboard.press('Shift+Tab')
      await keyboard.press('Tab')
      const again = await ui.focusedRow()
      for (const [key, number] of [
        ['.', 2],
        ['.', 3],
        [',', 2],
        [',', 1],
        ['.', 2],
      ] as const)
        await turns(key, number)
      await ui.link('Previous').click()
      await page.getByText('Page 1', { exact: true }).waitFor()
      await keyboard.press('?')
      await page.getByRole('switch').uncheck()
      await keyboard.press('Escape')
      await page.reload()
      await ui.row(50).waitFor()
      for (const key of ['?', 'n', '.']) await keyboard.press(key)
      // What closes above the rows moves none of them.
      await ui.click('Upload')
      await ui.row(40).scrollIntoViewIfNeeded()
      const before = await ui.row(40).boundingBox()
      await keyboard.press('Escape')
      await page.getByText('Upload plants').waitFor({ state: 'detached' })
      const moved = Math.abs(((await ui.row(40).boundingBox())?.y ?? 0) - (before?.y ?? 0))
      await ui.click('Keys')
      const isOn = await page.getByRole('switch').isChecked()
      await keyboard.press('Escape')
      await ui.row(2).getByRole('link').click()
      await page.getByRole('heading', { name: 'Monstera 2' }).waitFor()
      await titled('Monstera 2')

      expect(stops).toEqual([
        ...['API', 'Sign out', 'Find a plant', 'New plant', 'Refresh', 'Download', 'Upload', 'Keys'],
        ...['Select all', '1, Monstera 1', 'Next'],
      ])
      expect([last, again, isOn, row]).toEqual([['50', true], '50', false, '50, Monstera 50, evergreen'])
      expect(reached).toEqual(['50', '1', '11', '1', '1', '50', '50', '40', '50'])
      expect([moved < 2, await page.getByRole('form').count()]).toEqual([true, 0])
    },
  )

  // In Firefox the window around the page has stops of Tab, too.
  testInChromium('can be used with the keyboard alone, and moves nothing for people who want that', async (begin) => {
    const plants = ['Fern', 'Ivy', 'Moss']
    const { service, page, ui } = await begin({ plants, screen: { reducedMotion: 'reduce' }, isClosed: true })
    const { keyboard } = page
    const focused = () =>
      page.evaluate<string>(
        `(({ ariaLabel, name, dataset, textContent }) => ariaLabel || name || dataset.id || textContent)(document.activeElement)`,
      )
    /** Presses Tab until something with this name has the focus. */
    const tabTo = async (name: string) => {
      for (let tabs = 0; tabs < 40; tabs++) {
        await keyboard.press('Tab')
        if ((await focused()) === name) return
      }
      throw new Error(`no way leads to ${name}`)
    }
    const press = async (...keys: readonly string[]) => {
      for (const key of keys) await keyboard.press(key)
    }

    /** Types a name once the form waits for it. */
    const typeName = async (name: string) => {
      await page.locator('[name=name]:focus:read-write').waitFor()
      await until('the form is empty', async () => (await ui.field('Name').inputValue()) === '')
      await keyboard.type(name)
    }

    await page.goto(urlOf(service))
    await page.getByLabel('Access token').waitFor()
    const first = await focused()
    await keyboard.type(service.token)
    await press('Enter')
    await ui.row(3).waitFor()
    const arrived = await focused()
    await page.reload()
    await ui.row(3).waitFor()
    await tabTo('Skip to the plants')
    await press('Enter')
    const skipped = await page.evaluate<string>('document.activeElement.localName')
    await press('/')
    await keyboard.type('iv/n?')
    const typed = await ui.search().inputValue()
    await press('Escape')
    await ui.see('3 plants in all.')
    await press('n')
    await typeName('Yucca')
    // The page asks before the form closes.
    const asked = page.waitForEvent('dialog')
    await Promise.all([press('Escape'), asked.then((dialog) => dialog.dismiss())])
    await press('Enter')
    await ui.told('Added “Yucca”.')
    // The focus is in the form again.
    await typeName('Aloe')
    await press('Enter')
    await ui.told('Added “Aloe”.')
    await ui.row(5).waitFor()
    const way = await page.getByRole('link', { name: 'Show it' }).getAttribute('href')
    await press('Escape')
    await page.getByRole('form').waitFor({ state: 'detached' })
    await tabTo('1, Fern')
    await press('ArrowRight', 'ArrowRight', 'ArrowRight', 'Enter')
    await ui.see('Edit this plant')
    await press('Escape')
    await page.locator('tr[data-id="1"]:focus').waitFor()
    await press('ArrowDown', 'ArrowDown', 'ArrowUp', 'Control+Delete', 'Shift+Delete')
    const ring = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
    await press('Delete')
    await ui.told('Deleted “Ivy”.')
    const next = await ui.focusedRow()
    await tabTo('Undo the delete')
    await press('Enter')
    await ui.told('Restored “Ivy”.')
    await page.locator('tr[data-id="2"]:focus').waitFor()
    const moving = await page.evaluate<number>('document.getAnimations().length')
    await press('Enter')
    await page.getByRole('heading', { name: 'Ivy' }).waitFor()
    await press('?')
    await page.getByRole('dialog', { name: 'Keys' }).getByText('Go from plant to plant').waitFor()
    await press('n', 'Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const forms = await page.getByRole('form').count()
    await tabTo('Sign out')
    await press('Enter')
    await page.getByLabel('Access token').waitFor()

    expect([first, arrived, skipped, typed]).toEqual(['token', 'Plants', 'main', 'iv/n?'])
    expect([ring, next]).toEqual(['solid', '3'])
    expect([moving, forms, way]).toEqual([0, 0, '#/plants/5'])
    expect(await service.names()).toEqual(['Fern', 'Ivy', 'Moss', 'Yucca', 'Aloe'])
  })
})
