import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { IS_LONG } from '../../support/long.ts'
import { lacks } from '../../support/requirement.ts'
import { BROWSER_TIMEOUT_MS, CHROMIUM, startBrowser, startPage } from '../support/browser.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

/** The library tries whether it may make code of text, and does without. */
const EVAL_PROBE = 'script-src eval'
/** The address of a frame that a browser refuses to fill. */
const REFUSED_FRAME = 'chrome-error://chromewebdata/'

const urlOf = ({ port }: Service) => `http://127.0.0.1:${port}`

/** What an injected script might try, and the refusal that the browser reports. docs.test.ts has the whole policy. */
const REFUSALS = {
  'a script of its own': 'script-src-elem inline',
  'a handler in an attribute': 'script-src-attr inline',
  'a script from elsewhere': 'script-src-elem elsewhere/script.js',
  'an image from elsewhere': 'img-src elsewhere/image.png',
  'a frame': 'frame-src elsewhere',
  'a request elsewhere': 'connect-src elsewhere/fetch',
  'another base': 'base-uri elsewhere/base',
  'a form': 'form-action elsewhere/form',
}

/** A script that tries each of these, and returns each outcome: the refusal, or `done`. */
const attempts = (elsewhere: string) => `(async () => {
  const refusals = ${JSON.stringify(REFUSALS)}
  const outcomes = {}
  const attempt = async (name, begin) => {
    outcomes[name] = await new Promise((resolve) => {
      document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) => {
        const refusal = effectiveDirective + ' ' + blockedURI.replace('${elsewhere}', 'elsewhere')
        if (refusal === refusals[name]) resolve(refusal)
      })
      begin(() => resolve('done'))
    })
  }
  const put = (tag, properties) => (done) =>
    document.body.append(Object.assign(document.createElement(tag), { onload: done, ...properties }))
  const run = (tag, properties) => (done) => {
    globalThis.run = done
    put(tag, properties)(() => {})
  }

  await attempt('a script of its own', run('script', { textContent: 'globalThis.run()' }))
  await attempt('a handler in an attribute', run('div', { innerHTML: '<img src="data:," onerror="globalThis.run()">' }))
  await attempt('a script from elsewhere', put('script', { src: '${elsewhere}/script.js' }))
  await attempt('an image from elsewhere', put('img', { src: '${elsewhere}/image.png' }))
  await attempt('a frame', put('iframe', { src: '${elsewhere}/frame' }))
  await attempt('a request elsewhere', (done) => fetch('${elsewhere}/fetch', { mode: 'no-cors' }).then(done, () => {}))
  await attempt('another base', (done) => {
    document.head.append(Object.assign(document.createElement('base'), { href: '${elsewhere}/base' }))
    if (document.baseURI.startsWith('${elsewhere}')) done()
  })
  await attempt('a form', () => {
    const form = Object.assign(document.createElement('form'), { action: '${elsewhere}/form', method: 'post' })
    document.body.append(form)
    form.submit()
  })
  return outcomes
})()`

const LIGHT = { colorScheme: 'light', background: 'rgb(255, 255, 255)' } as const
const DARK = { colorScheme: 'dark', background: 'rgb(15, 15, 15)' } as const
const DESKTOP = { viewport: { width: 1440, height: 900 } }
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

/** Screens of people; `bun run check:long docs-browser` tries all of them. */
const SCREENS = [
  { name: 'a desktop, light', ...DESKTOP, ...LIGHT },
  { name: 'a phone, dark', ...PHONE, ...DARK },
  ...(IS_LONG
    ? [
        { name: 'a desktop, dark', ...DESKTOP, ...DARK },
        { name: 'a phone, light', ...PHONE, ...LIGHT },
      ]
    : []),
]

/** The button that must not cover the address. It shows if the dialog is narrower than this. */
const TOGGLE = '.scalar-sidebar-toggle'
const NARROW_BELOW = 768

/** A folder for pictures of the page, to look at. */
const PICTURES = process.env.DOCS_PICTURES

type Keep = (moment: string) => Promise<unknown>

const keepPictures =
  (page: Page, name: string): Keep =>
  async (moment) =>
    PICTURES && page.screenshot({ path: join(PICTURES, `${name}, ${moment}.png`) })

/** Scrolls until a part of the page is there: the page draws its lower parts when they are scrolled to. */
async function scrolledTo(page: Page, part: Locator): Promise<Locator> {
  while ((await part.count()) === 0) {
    await page.mouse.wheel(0, 300)
    await page.waitForTimeout(50)
  }
  await part.scrollIntoViewIfNeeded()
  return part
}

interface Attempt {
  /** Is entered once: the page remembers the token for the next operation. */
  readonly token?: string
  readonly answer: string
  readonly keep: Keep
}

/** Tries an operation out until its answer shows. Returns the status that shows, unless the address is covered. */
async function tryOut(page: Page, name: RegExp, { token, answer, keep }: Attempt): Promise<string> {
  await (await scrolledTo(page, page.getByRole('button', { name }))).click()
  const dialog = page.getByRole('dialog')
  if (token !== undefined) await dialog.getByPlaceholder('Token').fill(token)
  await dialog.getByRole('button', { name: /^Send/ }).first().click()
  const response = dialog.getByRole('region', { name: 'Response', exact: true })
  await response.getByRole('region', { name: 'Body', exact: true }).getByText(answer).first().waitFor()
  const status = await response.getByRole('link', { name: /^\d{3} / }).textContent()
  const isNarrow = (page.viewportSize()?.width ?? 0) < NARROW_BELOW
  if (isNarrow && (await dialog.locator(TOGGLE).isVisible())) return 'the address is covered by the toggle'
  await response.scrollIntoViewIfNeeded()
  await keep(name.source.endsWith('post') ? 'create' : 'list')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  return status?.trim() ?? ''
}

describe.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('the page in a browser, $name', (transport) => {
  test.each(SCREENS)(
    'shows the operations, and tries out a create and a list with a token, on $name',
    async ({ name, background, ...screen }) => {
      await using service = await startService(transport)
      await using browser = await startBrowser()
      const watched = await browser.open({ ...screen, only: urlOf(service) })
      const { page, requests, errors, violations } = watched
      const keep = keepPictures(page, name)

      await page.goto(`${urlOf(service)}/docs`)
      await page.getByRole('heading', { name: 'Plant Store' }).waitFor()
      await keep('page')
      for (const name of ['Delete a plant', 'Get a plant', 'Create a plant', 'List plants']) {
        await scrolledTo(page, page.getByRole('heading', { name }))
      }
      const created = await tryOut(page, /Test Request.*post/i, { token: service.token, answer: '"Monstera"', keep })
      const listed = await tryOut(page, /Test Request.*get .plants.$/i, { answer: '"Monstera"', keep })
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
    BROWSER_TIMEOUT_MS,
  )

  test(
    'lets an injected script load, run or send nothing',
    async () => {
      await using service = await startService(transport)
      using elsewhere = startPage()
      await using browser = await startBrowser()
      const { page } = await browser.open()

      await page.goto(`${urlOf(service)}/docs`)
      await page.getByText('List plants').first().waitFor()
      const outcomes = await page.evaluate<Record<string, string>>(attempts(elsewhere.origin))

      expect(outcomes).toEqual(REFUSALS)
      expect(elsewhere.asked).toEqual([])
    },
    BROWSER_TIMEOUT_MS,
  )

  test(
    'refuses to be shown in a frame',
    async () => {
      await using service = await startService(transport)
      const frame = (path: string) => `<iframe src="${urlOf(service)}${path}"></iframe>`
      using holder = startPage(frame('/docs') + frame('/openapi.json'))
      await using browser = await startBrowser()
      const { page } = await browser.open()

      await page.goto(holder.origin)

      const [, docs, document] = page.frames()
      expect([docs?.url(), document?.url()]).toEqual([REFUSED_FRAME, `${urlOf(service)}/openapi.json`])
    },
    BROWSER_TIMEOUT_MS,
  )
})
