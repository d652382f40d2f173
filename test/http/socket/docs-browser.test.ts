import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { IS_LONG } from '../../support/long.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { CHROMIUM, sharedBrowser } from '../support/browser.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

/** The library tries whether it may make code of text, and does without. */
const EVAL_PROBE = 'script-src eval'

const urlOf = ({ port }: Service) => `http://127.0.0.1:${port}`

const LIGHT = { colorScheme: 'light', background: 'rgb(255, 255, 255)' } as const
const DARK = { colorScheme: 'dark', background: 'rgb(15, 15, 15)' } as const
const DESKTOP = { viewport: { width: 1440, height: 900 } }
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

/** Screens of people. Only `bun run check:long docs-browser` tries them: `bun run check` reads what the page consists of (pages.test.ts). */
const SCREENS = [
  { name: 'a phone, dark', ...PHONE, ...DARK },
  { name: 'a desktop, light', ...DESKTOP, ...LIGHT },
  { name: 'a desktop, dark', ...DESKTOP, ...DARK },
  { name: 'a phone, light', ...PHONE, ...LIGHT },
]

/** The button that must not cover the address. It shows if the dialog is narrower than this. */
const TOGGLE = '.scalar-sidebar-toggle'
const NARROW_BELOW = 768

/** A folder for pictures of the page, to look at. */
const PICTURES = process.env.DOCS_PICTURES

/** Scrolls until a part of the page is there: the page draws its lower parts when they are scrolled to. */
async function scrolledTo(page: Page, part: Locator): Promise<Locator> {
  const scroll = async () => {
    if ((await part.count()) > 0) return true
    await page.mouse.wheel(0, 300)
    return false
  }
  await until('the page has drawn the part', scroll, { lookMs: 50 })
  await part.scrollIntoViewIfNeeded()
  return part
}

type Keep = (moment: string) => Promise<unknown>

/** Tries an operation out until the plant of the example shows. Returns the status that shows, unless the address is covered. */
async function tryOut(page: Page, name: RegExp, keep: Keep, token?: string): Promise<string> {
  await (await scrolledTo(page, page.getByRole('button', { name }))).click()
  const dialog = page.getByRole('dialog')
  // The page remembers the token for the next operation.
  if (token !== undefined) await dialog.getByPlaceholder('Token').fill(token)
  await dialog.getByRole('button', { name: /^Send/ }).first().click()
  const response = dialog.getByRole('region', { name: 'Response', exact: true })
  await response.getByRole('region', { name: 'Body', exact: true }).getByText('"Monstera"').first().waitFor()
  const status = await response.getByRole('link', { name: /^\d{3} / }).textContent()
  const isNarrow = (page.viewportSize()?.width ?? 0) < NARROW_BELOW
  if (isNarrow && (await dialog.locator(TOGGLE).isVisible())) return 'the address is covered by the toggle'
  await response.scrollIntoViewIfNeeded()
  await keep(name.source.endsWith('post') ? 'create' : 'list')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  return status?.trim() ?? ''
}

describe.skipIf(!IS_LONG || lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('the page in a browser, $name', (transport) => {
  test.each(SCREENS)(
    'shows the operations, and tries out a create and a list with a token, on $name',
    async ({ name, background, ...screen }) => {
      await using service = await startService(transport)
      const browser = await sharedBrowser()
      const { page, requests, errors, violations } = await browser.open({ ...screen, only: urlOf(service) })
      const keep: Keep = async (moment) =>
        PICTURES && page.screenshot({ path: join(PICTURES, `${name}, ${moment}.png`) })

      await page.goto(`${urlOf(service)}/docs`)
      await page.getByRole('heading', { name: 'Plant Store' }).waitFor()
      await keep('page')
      for (const name of ['Delete a plant', 'Get a plant', 'Create a plant', 'List plants']) {
        await scrolledTo(page, page.getByRole('heading', { name }))
      }
      const created = await tryOut(page, /Test Request.*post/i, keep, service.token)
      const listed = await tryOut(page, /Test Request.*get .plants.$/i, keep)
      const widest = await page.evaluate<number>('document.documentElement.scrollWidth')

      expect([created, listed]).toEqual(['200 OK', '200 OK'])
      expect(await service.names()).toEqual(['Monstera'])
      expect(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).toBe(background)
      expect(widest).toBe(screen.viewport.width)
      expect(errors).toEqual([])
      expect(await violations()).toEqual([EVAL_PROBE])
      expect(requests.filter((request) => !request.includes(` ${urlOf(service)}/`))).toEqual([])
      expect(requests.filter((request) => request.includes('/plants'))).toEqual([
        `POST ${urlOf(service)}/plants`,
        `GET ${urlOf(service)}/plants?limit=20&include=id`,
      ])
    },
  )
})
