import { type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core'
import type { Requirement } from '../../support/requirement.ts'

const EXECUTABLES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
const executable = EXECUTABLES.map((name) => Bun.which(name)).find((path) => path !== null)

export const CHROMIUM: Requirement = { missing: 'Chromium is missing', isMet: () => executable !== undefined }

/** The time for a browser to start and to do the steps of a test, on a busy machine too. */
export const BROWSER_TIMEOUT_MS = 60_000

/** The screen that shows a page. */
export interface Screen extends BrowserContextOptions {
  /** The only origin that the page can reach; all if left out. */
  readonly only?: string
}

let shared: ReturnType<typeof startBrowser> | undefined

/** The browser of all tests in this process, with which it ends. A start takes two seconds. */
export function sharedBrowser() {
  shared ??= startBrowser()
  return shared
}

/** A browser with an empty profile. */
export async function startBrowser() {
  if (executable === undefined) throw new Error(`there is none of ${EXECUTABLES.join(', ')}`)
  const browser = await chromium.launch({ executablePath: executable })
  let kept: BrowserContext | undefined
  return {
    open: async ({ only, ...screen }: Screen = {}) => watch(await browser.newContext(screen), only),
    /** Opens a page in a profile that is kept, and closes those that were open in it. That takes half of the time. */
    async reopen() {
      kept ??= await browser.newContext()
      await kept.setOffline(false)
      const before = kept.pages()
      // Chromium keeps its process only while a page is open in it.
      const watched = await watch(kept)
      await Promise.all(before.map((page) => page.close()))
      return watched
    },
    [Symbol.asyncDispose]: () => browser.close(),
  }
}

/** A page, its requests, the errors on its console and uncaught ones, and the violations of its policy. */
async function watch(context: BrowserContext, only?: string) {
  const page = await context.newPage()
  page.setDefaultTimeout(BROWSER_TIMEOUT_MS / 2)
  const requests: string[] = []
  const errors: string[] = []
  page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`))
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  page.on('pageerror', ({ message }) => errors.push(message))
  if (only !== undefined) {
    await page.route('**', (route) =>
      new URL(route.request().url()).origin === only ? route.continue() : route.abort('blockedbyclient'),
    )
  }
  await page.addInitScript(`
    globalThis.violations = []
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
      globalThis.violations.push(effectiveDirective + ' ' + blockedURI))`)
  return { page, requests, errors, violations: () => page.evaluate<readonly string[]>('globalThis.violations') }
}
