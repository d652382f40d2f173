import { describe, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { addPlants } from '../../support/many-plants.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { CHROMIUM } from '../support/browser.ts'
import {
  button,
  field,
  focusedRow,
  hold,
  names,
  recordTexts,
  row,
  rows,
  search,
  send,
  sharedBrowser,
  signIn,
  testPage,
  told,
  tryNow,
  urlOf,
} from '../support/page.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const browser = sharedBrowser()

const list = (page: Page) => page.getByRole('region', { name: 'Plants' })
const isDimmed = (page: Page) => page.evaluate<boolean>('document.querySelector("section.loading") !== null')

async function topOf(page: Page, id: number): Promise<number> {
  return (await row(page, id).boundingBox())?.y ?? Number.NaN
}

describe.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('lists on the page, $name', (transport) => {
  testPage('a list is loading, empty, without a match or failed, and never falsely empty', async () => {
    await using service = await startService(transport)
    const { page } = await browser.open()
    const said = await recordTexts(page, ['no plants', 'No plant'])
    const slow = await hold(page, 'GET', '/plants')

    await page.goto(urlOf(service))
    await signIn(page, service.token)
    await slow.begun
    await page.getByText('Loading your plants…').waitFor()
    const early = await said()
    slow.release()
    await page.getByText('You have no plants yet.').waitFor()
    await page.getByText('0 plants in all.').waitFor()
    await button(page, 'Add your first plant').click()
    await send(page, { Name: 'Fern' })
    await row(page, 1).waitFor()
    await search(page).fill('ivy')
    await page.getByText('No plant here contains “ivy”.').waitFor()
    await button(page, 'Show all').click()
    await row(page, 1).waitFor()

    const { page: other } = await browser.open({})
    const saidByOther = await recordTexts(other, ['no plants', 'No plant'])
    await other.route('**/plants?*', (route) => route.abort())
    await other.goto(urlOf(service))
    await signIn(other, service.token)
    await button(other, 'Give up').click()
    await other.getByRole('alert').getByText('The plants could not be loaded. The server cannot be reached.').waitFor()
    await other.unrouteAll()
    await button(other, 'Try again').click()
    await row(other, 1).waitFor()

    expect([early, await saidByOther()]).toEqual([[], []])
  })

  testPage('the number of a page follows its rows while the server is slow or away', async () => {
    await using service = await startService(transport)
    addPlants(service.database, 150)
    const { page } = await browser.signedIn(service)
    const at = async () => [
      await page.getByText(/^Page \d$/).textContent(),
      (await names(page))[0],
      await isDimmed(page),
    ]

    await row(page, 50).waitFor()
    const slow = await hold(page, 'GET', '/plants')
    await button(page, 'Next').click()
    await slow.begun
    const waiting = await at()
    slow.release()
    await page.getByText('Page 2', { exact: true }).waitFor()
    const turned = await at()
    const top = Math.round((await list(page).boundingBox())?.y ?? Number.NaN)
    await page.context().setOffline(true)
    await button(page, 'Next').click()
    await page.getByText('The server cannot be reached.').waitFor()
    const away = await at()
    const notice = await page.locator('.pause').boundingBox()
    await page.context().setOffline(false)
    await tryNow(page)
    await row(page, 150).waitFor()
    const last = await at()
    const isLast = await button(page, 'Next').getAttribute('aria-disabled')
    await button(page, 'Back').click()
    await row(page, 51).waitFor()

    expect([waiting, turned, away, last, await at()]).toEqual([
      ['Page 1', 'Monstera 1', true],
      ['Page 2', 'Monstera 51', false],
      ['Page 2', 'Monstera 51', true],
      ['Page 3', 'Monstera 101', false],
      ['Page 2', 'Monstera 51', false],
    ])
    expect(top).toBe(0)
    expect(isLast).toBe('true')
    expect(notice?.y).toBeGreaterThan(0)
    expect((notice?.y ?? 0) + (notice?.height ?? 0)).toBeLessThanOrEqual(page.viewportSize()?.height ?? 0)
  })

  testPage('the address holds page, filter, sort and plant, and no server gets them', async () => {
    await using service = await startService(transport)
    addPlants(service.database, 120)
    const { page, requests } = await browser.signedIn(service)
    const shown = async (page: Page) => [await rows(page), await search(page).inputValue()]

    await row(page, 50).waitFor()
    await button(page, 'Next').click()
    await row(page, 100).waitFor()
    await search(page).fill('era 9')
    await button(page, 'Name').click()
    await button(page, 'Name').click()
    const before = await shown(page)
    await page.reload()
    await row(page, 99).waitFor()
    const reloaded = await shown(page)
    await button(page, 'Name').click()
    await page.goBack()
    const back = await shown(page)
    const { page: other } = await browser.open({})
    await other.goto(page.url())
    await signIn(other, service.token)
    await row(other, 99).waitFor()
    const sent = await shown(other)
    await row(other, 92).getByRole('link', { name: 'Monstera 92' }).click()
    await other.getByRole('heading', { name: 'Monstera 92' }).waitFor()
    const { hash } = new URL(other.url())
    await other.reload()
    await other.getByRole('heading', { name: 'Monstera 92' }).waitFor()
    await other.goBack()
    await row(other, 99).waitFor()

    expect(before).toEqual([
      [99, 98, 97, 96, 95, 94, 93, 92, 91, 90].map((id) => [`${id}`, `Monstera ${id}`, id % 2 ? '' : 'evergreen']),
      'era 9',
    ])
    expect([reloaded, back, sent, await shown(other)]).toEqual([before, before, before, before])
    expect(await other.getByText('Page 2', { exact: true }).count()).toBe(1)
    expect(hash).toBe('#/plants/92')
    expect([...requests, service.logs()].filter((text) => /#|filter|sort|era.9/.test(text))).toEqual([])
  })

  testPage('a deleted row leaves the next one at its place and focused, and comes back focused', async () => {
    await using service = await startService(transport)
    addPlants(service.database, 50)
    const { page } = await browser.signedIn(service)

    await button(page, 'Delete plant 40').scrollIntoViewIfNeeded()
    const before = await topOf(page, 41)
    await button(page, 'Delete plant 40').click()
    await told(page, 'Deleted “Monstera 40” (evergreen).')
    const after = [await topOf(page, 41), await focusedRow(page)]
    await button(page, 'Undo the delete of plant 40').click()
    await told(page, 'Restored “Monstera 40” (evergreen).')
    await until('the plant has the focus', async () => (await focusedRow(page)) === '40')

    expect(after).toEqual([before, '41'])
    expect(await topOf(page, 41)).toBe(before)
  })

  testPage('can be used with the keyboard alone, and moves nothing for people who want that', async () => {
    await using service = await startService(transport)
    for (const [index, name] of ['Fern', 'Ivy', 'Moss'].entries()) await service.create({ id: index + 1, name })
    const { page } = await browser.open({ reducedMotion: 'reduce' })
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

    await page.goto(urlOf(service))
    await page.getByLabel('Access token').waitFor()
    const first = await focused()
    await keyboard.type(service.token)
    await press('Enter')
    await row(page, 3).waitFor()
    await page.reload()
    await row(page, 3).waitFor()
    await tabTo('Skip to the plants')
    await press('Enter')
    const skipped = await page.evaluate<string>('document.activeElement.localName')
    await press('/')
    await keyboard.type('iv/n?')
    const typed = await search(page).inputValue()
    await press('Escape')
    await page.getByText('3 plants in all.').waitFor()
    await press('n')
    await field(page, 'Name').waitFor()
    await keyboard.type('Yucca')
    // The page asks before the form closes. Playwright answers no.
    await press('Escape', 'Enter')
    await told(page, 'Added “Yucca”.')
    // The focus is in the form again.
    await keyboard.type('Aloe')
    await press('Enter')
    await told(page, 'Added “Aloe”.')
    await row(page, 5).waitFor()
    await press('Escape')
    await page.getByRole('form').waitFor({ state: 'detached' })
    await tabTo('1')
    await press('ArrowDown', 'ArrowDown', 'ArrowUp')
    const ring = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
    await press('Delete')
    await told(page, 'Deleted “Ivy”.')
    const next = await focusedRow(page)
    await press('ArrowUp', 'Tab', 'Tab')
    const undo = await focused()
    await press('Enter')
    await told(page, 'Restored “Ivy”.')
    await page.locator('tr[data-id="2"]:focus').waitFor()
    const moving = await page.evaluate<number>('document.getAnimations().length')
    await press('Enter')
    await page.getByRole('heading', { name: 'Ivy' }).waitFor()
    await press('?')
    await page.getByRole('dialog', { name: 'Keys' }).getByText('Go from row to row').waitFor()
    await press('n', 'Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const forms = await page.getByRole('form').count()
    await tabTo('Sign out')
    await press('Enter')
    await page.getByLabel('Access token').waitFor()

    expect([first, skipped, typed]).toEqual(['token', 'main', 'iv/n?'])
    expect([ring, next, undo]).toEqual(['solid', '3', 'Undo the delete of plant 2'])
    expect([moving, forms]).toEqual([0, 0])
    expect(await service.names()).toEqual(['Fern', 'Ivy', 'Moss', 'Yucca', 'Aloe'])
  })
})
