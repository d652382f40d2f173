import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, firefox } from 'playwright-core'
import type { Requirement } from '../../support/requirement.ts'
import { SLACK_MS } from '../../support/slack.ts'

/** A browser of the system that tests drive. */
export interface Driven extends Requirement {
  readonly name: string
  readonly start: () => Promise<Browser>
}

export const CHROMIUM = driven(
  'Chromium',
  ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
  (executablePath) => chromium.launch({ executablePath }),
)

/** Without a screen Firefox finds no mouse, so that none is fine and hovers. Scroll bars take no room, as in Chromium. */
const PREFERENCES = {
  'ui.primaryPointerCapabilities': 6,
  'ui.allPointerCapabilities': 6,
  'ui.useOverlayScrollbars': 1,
}

export const FIREFOX = driven('Firefox', ['firefox-esr', 'firefox'], async (executablePath) =>
  // This channel speaks WebDriver BiDi to a Firefox as its users have it.
  withoutColors(await firefox.launch({ channel: 'moz-firefox', executablePath, firefoxUserPrefs: PREFERENCES })),
)

/** How long a page may take for one step: 20 seconds on an idle machine. */
const STEP_LIMIT_MS = 4 * SLACK_MS

/** The screen that shows a page. */
export interface Screen extends BrowserContextOptions {
  /** The only origin that the page can reach; all if left out. */
  readonly only?: string
}

const shared = new Map<Driven, ReturnType<typeof startBrowser>>()

/** The browser of this kind for all tests in this process. A start takes two seconds. */
export function sharedBrowser(kind: Driven = CHROMIUM) {
  const browser = shared.get(kind) ?? startBrowser(kind)
  shared.set(kind, browser)
  return browser
}

/** Ends the browser of this kind that is shared, if there is one. */
export async function endBrowser(kind: Driven): Promise<void> {
  const browser = shared.get(kind)
  shared.delete(kind)
  await (await browser)?.[Symbol.asyncDispose]()
}

/** A browser with an empty profile. */
export async function startBrowser({ start }: Driven = CHROMIUM) {
  const browser = await start()
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

function driven(name: string, executables: readonly string[], launch: (path: string) => Promise<Browser>): Driven {
  const executable = executables.map((each) => Bun.which(each)).find((path) => path !== null)
  return {
    name,
    missing: `${name} is missing`,
    isMet: () => executable !== undefined,
    start: async () => {
      if (executable === undefined) throw new Error(`there is none of ${executables.join(', ')}`)
      return launch(executable)
    },
  }
}

/**
 * Playwright sets the color scheme of each new profile, with a command that Firefox 153 does not know. Nothing turns that off, so
 * this drops the command where Playwright's server sends it. Its types do not show that.
 */
function withoutColors(browser: Browser): Browser {
  const { _connection: connection } = browser as unknown as {
    readonly _connection: { toImpl(client: Browser): { readonly _browserSession: Session } }
  }
  const session = connection.toImpl(browser)._browserSession
  const send = session.send.bind(session)
  session.send = async (method, params) => (method === 'emulation.setMediaFeaturesOverride' ? {} : send(method, params))
  return browser
}

interface Session {
  send: (method: string, params: object) => Promise<object>
}

/** A page, its requests, the errors on its console and uncaught ones, and the violations of its policy. */
async function watch(context: BrowserContext, only?: string) {
  const page = await context.newPage()
  page.setDefaultTimeout(STEP_LIMIT_MS)
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
