import { afterAll, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Page, Route } from 'playwright-core'
import { IS_LONG } from '../../support/long.ts'
import { addPlants } from '../../support/many-plants.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { CHROMIUM, type Driven, endBrowser, FIREFOX, type Screen, sharedBrowser } from './browser.ts'
import { type Service, startService } from './service.ts'
import { type ServiceOptions, SOCKET_TRANSPORTS, type Transport } from './transports.ts'

/** Where tests of the page run, unless they say otherwise. */
const BROWSERS = IS_LONG ? [CHROMIUM, FIREFOX] : [CHROMIUM]

/** How a test of the page begins: on an empty store, signed in with the write token of user `me`, in the profile that is kept. */
interface Start extends ServiceOptions {
  /** The plants of `me`: how many, or each, as an object, its JSON, or a name, whose place is its id. */
  readonly plants?: number | readonly (string | object)[]
  /** A profile of its own for a screen. */
  readonly screen?: Screen
  /** Leaves opening the page to the test. */
  readonly isClosed?: boolean
}

/** Registers tests of the page. Without a screen of its own a test closes the page of the one before, so such tests are not concurrent. */
export function pageTests() {
  // Chromium ends with the process, but Firefox does not.
  afterAll(() => endBrowser(FIREFOX))
  const begin = async (
    transport: Transport,
    driven: Driven,
    { plants = [], screen, isClosed, ...options }: Start,
    stack: AsyncDisposableStack,
  ) => {
    const open = async (screen?: Screen) => {
      const browser = await sharedBrowser(driven)
      const watched = await (screen ? browser.open(screen) : browser.reopen())
      return { ...watched, ui: uiOf(watched.page) }
    }
    const service = stack.use(await startService(transport, options))
    if (typeof plants === 'number') addPlants(service.database, plants)
    else
      for (const [index, plant] of plants.entries()) {
        const isName = typeof plant === 'string' && !plant.startsWith('{')
        expect(await service.create(isName ? { id: index + 1, name: plant } : plant)).toMatchObject({ status: 200 })
      }
    const opened = await open(screen)
    if (!isClosed) await opened.ui.visit(service)
    return { ...opened, service, open }
  }
  type Begun = ReturnType<typeof begin>
  type Run = (begin: (start?: Start) => Begun) => Promise<void>
  /** Registers a test, which calls `begin` once. `bun run check` leaves out those that are long. */
  const testPage = (title: string, run: Run, { isLong = false, browsers = BROWSERS } = {}) => {
    for (const driven of browsers)
      test.skipIf((isLong && !IS_LONG) || lacks(driven)).each(SOCKET_TRANSPORTS)(
        `${title}, ${driven.name}, $name`,
        async (transport) => {
          await using stack = new AsyncDisposableStack()
          let begun: Begun | undefined
          const begins = (start = {}) => (begun = begin(transport, driven, start, stack))
          await run(begins).catch(async (error: Error) => {
            const shown = begun?.then(({ page }) => page.evaluate('document.body.innerText'))
            throw Object.assign(error, { message: `${error.message}\nThe page shows:\n${await shown?.catch(String)}` })
          })
        },
      )
  }
  /** For what Playwright does in Chromium alone: downloads, bodies, touch, paper, the clipboard, no JavaScript, slow lines, heaps. */
  const testInChromium = (title: string, run: Run, options: Parameters<typeof testPage>[2] = {}) =>
    testPage(title, run, { ...options, browsers: [CHROMIUM] })
  return { testPage, testInChromium }
}

export const urlOf = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}/`

/** What another client does to change a plant. */
export async function change(service: Service, id: number | string, name: string): Promise<void> {
  expect(await service.delete(id)).toMatchObject({ status: 204 })
  expect(await service.create(`{"id":${id},"name":${JSON.stringify(name)}}`)).toMatchObject({ status: 200 })
}

/** The server gets the request, and the page no answer. */
export const loseAnswer = (route: Route) => route.fetch().then(() => route.abort('connectionreset'))

/** A refusal of the server is on the console, too. */
export const withoutRefusals = (errors: readonly string[]) =>
  errors.filter((error) => !/^Failed to load resource: the server responded with a status of 4\d\d/.test(error))

/** Rows are alike, so `bun run check` looks for problems in the first ones. */
const ALIKE = IS_LONG ? [] : ['tbody tr:nth-child(n + 6)']

/** The least height and width of what a thumb must hit. */
const TARGET_PX = 44

/** What a person does on a page, and sees there. */
export function uiOf(page: Page) {
  const field = (name: string) => page.getByRole('form').getByLabel(name, { exact: true })
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const click = (name: string) => button(name).click()
  /** The link to a page of the list. */
  const link = (name: 'First page' | 'Previous' | 'Next') => page.getByRole('link', { name, exact: true })
  /** What happened last. */
  const status = () => page.getByRole('status')
  /** The button that puts back what was deleted. */
  const undo = () => page.getByRole('button', { name: /^Undo / })
  /** Waits until the page tells that this has happened. */
  const told = (text: string) => status().getByText(text).waitFor()
  const signIn = async (token: string) => {
    await page.getByLabel('Access token').fill(token)
    await click('Sign in')
  }
  /** The texts of the cells of id, name and further fields. */
  const rows = () =>
    page.evaluate<readonly (readonly string[])[]>(
      `[...document.querySelectorAll('tbody tr')].map((row) =>
        [...row.cells].filter((cell) => cell.className !== 'buttons' && !cell.querySelector('input')).map((cell) => cell.textContent))`,
    )
  /** Handles the next request with this method and path in another way. `done` resolves once that has happened. */
  const onNext = async (method: string, path: string, handle: (route: Route) => Promise<void>) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let isDone = false
    const isPath = (url: URL) => url.pathname === path
    await page.route(isPath, async (route) => {
      if (isDone || route.request().method() !== method) return route.fallback()
      isDone = true
      await handle(route)
      resolve()
    })
    return { done: promise }
  }
  /** Does something before the server gets the next request with this method and path. */
  const before = (method: string, path: string, act: () => Promise<unknown>) =>
    onNext(method, path, (route) => act().then(() => route.fallback()))
  return {
    ...{ field, button, click, link, status, undo, told, signIn, rows, onNext, before },
    /** Waits until a text shows. */
    see: (text: string | RegExp) => page.getByText(text).waitFor(),
    search: () => page.getByRole('searchbox', { name: 'Find a plant' }),
    row: (id: number | string) => page.locator(`tr[data-id="${id}"]`),
    names: async () => (await rows()).map(([, name]) => name),
    /** Opens the page of a service, and signs in. */
    async visit(service: Service, token = service.token) {
      await page.goto(urlOf(service))
      await signIn(token)
    },
    /** Fills the form for a plant with what the keys of an object name, and sends it. */
    async send(plant: Readonly<Record<string, string>>, submit = 'Add') {
      for (const [name, text] of Object.entries(plant)) await field(name).fill(text)
      await click(submit)
    },
    /** Opens the form for a new plant, and returns the id that it suggests. */
    async newPlant() {
      await click('New plant')
      return until('an id is suggested', async () => (await field('Id').inputValue()) || undefined)
    },
    /** Deletes a plant of the list, and waits until the page tells its name. */
    async deletes(id: number, plant: string) {
      // A phone has no buttons in the rows.
      if (await button(`Delete plant ${id}`).isVisible()) await click(`Delete plant ${id}`)
      else await page.locator(`tr[data-id="${id}"]`).press('Delete')
      await told(`Deleted ${plant}.`)
    },
    /** Puts back what was deleted, and waits until the page tells that. */
    async undoes(plants: string) {
      await undo().click()
      await told(`Restored ${plants}.`)
    },
    /** Chooses a file for the upload. */
    choose: (text: string | Buffer) =>
      page
        .locator('[type=file]')
        .setInputFiles({ name: 'plants.csv', mimeType: 'text/csv', buffer: Buffer.from(text) }),
    /** What the upload says once it has done something, and of which lines. */
    async uploaded() {
      await page.locator('.upload').getByRole('button', { name: 'Close' }).waitFor()
      return page.locator('.upload [aria-live], .upload li').allTextContents()
    },
    /** The path of the file that the browser stores when one presses a button. */
    async saved(name: string) {
      const downloading = page.waitForEvent('download')
      await click(name)
      return (await downloading).path()
    },
    /** The path of the file with all plants. */
    async downloaded(kind = 'JSON Lines, for programs') {
      await page.getByText('Download', { exact: true }).click()
      return this.saved(kind)
    },
    /** Waits until the page says that the sign-in has ended: after Refresh, unless it has learned that by a read of its own. */
    async ends(text = 'does not accept this token any more') {
      const told = page.getByText(text)
      await button('Refresh').or(told).first().click()
      await told.waitFor()
    },
    /** The id of the plant whose row has the focus. */
    focusedRow: () => page.evaluate<string | undefined>('document.activeElement.dataset.id'),
    scrollWidth: () => page.evaluate<number>('document.documentElement.scrollWidth'),
    /** What the tab keeps, and what the browser keeps. */
    stored: () =>
      page.evaluate<readonly [string, string]>('[sessionStorage, localStorage].map((area) => JSON.stringify(area))'),
    /** Waits until the page has read the next answer to such a request. Returns its status. */
    async answered(url: RegExp) {
      const response = await page.waitForResponse(url)
      // A page reads answers in the order in which they end. Chromium does not report the end of each that is read part by part.
      await page.evaluate('fetch("healthz").then((answer) => answer.text()).then(() => {})')
      return response.status()
    },
    /** Ends a pause, unless it has just ended by itself. */
    tryNow: () =>
      page.evaluate(
        `[...document.querySelectorAll('.pause button')].find((each) => each.textContent === 'Try now')?.click()`,
      ),
    /** Holds the next request with this method and path until it is released. */
    async hold(method: string, path: string) {
      const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      await before(method, path, () => {
        begun.resolve()
        return released.promise
      })
      return { begun: begun.promise, release: released.resolve }
    },
    /** Lets a page record each time at which it says one of these texts. Must be called before the page is opened. */
    async recordTexts(texts: readonly string[]) {
      await page.addInitScript(`
        globalThis.said = []
        new MutationObserver(() => {
          const text = document.body?.innerText ?? ''
          for (const each of ${JSON.stringify(texts)}) if (text.includes(each)) globalThis.said.push(each)
        }).observe(document, { subtree: true, childList: true, characterData: true })`)
      return () => page.evaluate<readonly string[]>('globalThis.said')
    },
    /** What axe-core finds wrong on the page as it is. */
    async accessibilityProblems() {
      if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(axe.source)
      // A color is not what it will be while it changes. What is hidden changes no more.
      await page.evaluate(`Promise.allSettled(document.getAnimations()
        .filter(({ effect }) => effect.target.checkVisibility()).map(({ finished }) => finished)).then(() => {})`)
      return page.evaluate<readonly string[]>(
        `axe.run({ exclude: ${JSON.stringify(ALIKE)} }).then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes.map(({ html, any }) => html + ' ' + any[0]?.message).join(' ')))`,
      )
    },
    /** The names of buttons and boxes that are too small for a thumb. A label belongs to its box, and a cell to its link. */
    smallTargets: () =>
      page.evaluate<readonly string[]>(
        `[...document.querySelectorAll('button, input, summary, header a, nav a')]
          .filter((target) => target.checkVisibility() && !target.classList.contains('skip'))
          .filter((target) => getComputedStyle(target).pointerEvents !== 'none')
          .map((target) => ({ target, box: (target.closest('label') ?? target).getBoundingClientRect() }))
          .filter(({ box }) => box.height < ${TARGET_PX} || box.width < ${TARGET_PX})
          .map(({ target, box }) => [target.ariaLabel ?? target.textContent, box.width, box.height].join(' '))`,
      ),
  }
}
