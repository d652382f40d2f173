import { afterAll, expect, test } from 'bun:test'
import axe from 'axe-core'
import type { Page, Route } from 'playwright-core'
import { BROWSER_TIMEOUT_MS, type Screen, startBrowser } from './browser.ts'
import type { Service } from './service.ts'

/** Registers a test that takes the time of a browser. */
export const testPage = (title: string, run: () => Promise<void>) => test(title, run, BROWSER_TIMEOUT_MS)

interface SignedIn {
  /** The write token of user `me` if left out. */
  readonly token?: string
  readonly screen?: Screen
}

/**
 * A browser for all tests of a file. A page for a screen has a profile of its own. Others close the one before, so tests that open
 * them run one after the other.
 */
export function sharedBrowser() {
  let started: ReturnType<typeof startBrowser> | undefined
  afterAll(async () => (await started)?.[Symbol.asyncDispose]())
  const open = async (screen?: Screen) => {
    started ??= startBrowser()
    const browser = await started
    return screen ? browser.open(screen) : browser.reopen()
  }
  return {
    open,
    /** Opens the page of a service, and signs in. */
    async signedIn(service: Service, { token = service.token, screen }: SignedIn = {}) {
      const opened = await open(screen)
      await opened.page.goto(urlOf(service))
      await signIn(opened.page, token)
      return opened
    },
  }
}

export const urlOf = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}/`

export const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })
export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
/** What happened last. */
export const status = (page: Page) => page.getByRole('status')
/** Waits until the page tells that this has happened. */
export const told = (page: Page, text: string) => status(page).getByText(text).waitFor()
export const search = (page: Page) => page.getByRole('searchbox', { name: 'Find a plant' })
export const row = (page: Page, id: number | string) => page.locator(`tr[data-id="${id}"]`)

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Access token').fill(token)
  await button(page, 'Sign in').click()
}

/** Fills the form for a plant with what the keys of an object name, and sends it. */
export async function send(page: Page, plant: Readonly<Record<string, string>>, submit = 'Add'): Promise<void> {
  for (const [name, text] of Object.entries(plant)) await field(page, name).fill(text)
  await button(page, submit).click()
}

/** The path of the file that the browser stores when one downloads all plants. */
export async function downloaded(page: Page): Promise<string> {
  const downloading = page.waitForEvent('download')
  await button(page, 'Download all').click()
  return (await downloading).path()
}

/** The texts of the cells of id, name and further fields. */
export const rows = (page: Page) =>
  page.evaluate<readonly (readonly string[])[]>(
    `[...document.querySelectorAll('tbody tr')].map((row) =>
      [...row.cells].filter((cell) => cell.className !== 'buttons' && !cell.querySelector('input')).map((cell) => cell.textContent))`,
  )
export const names = async (page: Page) => (await rows(page)).map(([, name]) => name)

/** The id of the plant whose row has the focus. */
export const focusedRow = (page: Page) => page.evaluate<string | undefined>('document.activeElement.dataset.id')
export const scrollWidth = (page: Page) => page.evaluate<number>('document.documentElement.scrollWidth')
/** What the tab keeps, and what the browser keeps. */
export const stored = (page: Page) =>
  page.evaluate<readonly [string, string]>('[sessionStorage, localStorage].map((area) => JSON.stringify(area))')

/** What another client does to change a plant. */
export async function change(service: Service, id: number, name: string): Promise<void> {
  expect((await service.delete(id)).status).toBe(204)
  expect((await service.create({ id, name })).status).toBe(200)
}

/** Ends a pause, unless it has just ended by itself. */
export const tryNow = (page: Page) =>
  page.evaluate(
    `[...document.querySelectorAll('.pause button')].find((each) => each.textContent === 'Try now')?.click()`,
  )

/** Handles the next request with this method and path in another way. Resolves once that has happened. */
export function onNext(page: Page, method: string, path: string, handle: (route: Route) => Promise<void>) {
  const { promise, resolve } = Promise.withResolvers<void>()
  let isDone = false
  const routed = page.route(
    (url) => url.pathname === path,
    async (route) => {
      if (isDone || route.request().method() !== method) return route.fallback()
      isDone = true
      await handle(route)
      resolve()
    },
  )
  return routed.then(() => ({ done: promise }))
}

/** The server gets the request, and the page no answer. */
export async function loseAnswer(route: Route): Promise<void> {
  await route.fetch()
  await route.abort('connectionreset')
}

/** Holds the next request with this method and path until it is released. */
export async function hold(page: Page, method: string, path: string) {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await onNext(page, method, path, async (route) => {
    begun.resolve()
    await released.promise
    await route.fallback()
  })
  return { begun: begun.promise, release: released.resolve }
}

/** Lets a page record each time at which it says one of these texts. Must be called before the page is opened. */
export async function recordTexts(page: Page, texts: readonly string[]) {
  await page.addInitScript(`
    globalThis.said = []
    new MutationObserver(() => {
      const text = document.body?.innerText ?? ''
      for (const each of ${JSON.stringify(texts)}) if (text.includes(each)) globalThis.said.push(each)
    }).observe(document, { subtree: true, childList: true, characterData: true })`)
  return () => page.evaluate<readonly string[]>('globalThis.said')
}

/** What axe-core finds wrong on the page as it is. */
export async function accessibilityProblems(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(axe.source)
  // A color is not what it will be while it changes.
  await page.evaluate('Promise.allSettled(document.getAnimations().map(({ finished }) => finished)).then(() => {})')
  return page.evaluate<readonly string[]>(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes.map(({ html, any }) => html + ' ' + any[0]?.message).join(' ')))`,
  )
}

/** The least height and width of what a thumb must hit. */
const TARGET_PX = 44

/** The names of buttons and boxes that are too small for a thumb. A label belongs to its box, and a cell to its link. */
export const smallTargets = (page: Page) =>
  page.evaluate<readonly string[]>(
    `[...document.querySelectorAll('button, input, summary, header a')]
      .filter((target) => target.checkVisibility() && !target.classList.contains('skip'))
      .map((target) => ({ target, box: (target.closest('label') ?? target).getBoundingClientRect() }))
      .filter(({ box }) => box.height < ${TARGET_PX} || box.width < ${TARGET_PX})
      .map(({ target, box }) => [target.ariaLabel ?? target.textContent, box.width, box.height].join(' '))`,
  )

/** A refusal of the server is on the console, too. */
export const withoutRefusals = (errors: readonly string[]) =>
  errors.filter((error) => !/^Failed to load resource: the server responded with a status of 4\d\d/.test(error))
