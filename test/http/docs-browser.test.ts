import { describe, expect, test } from 'bun:test'
import { BROWSER_IS_SKIPPED, BROWSER_NOTE, BROWSER_TIMEOUT_MS, startBrowser, startPage } from '../support/browser.ts'
import { type Service, SOCKET_TRANSPORTS, startService } from '../support/service.ts'

/** The library looks whether it may make code of text, and does without. */
const EVAL_PROBE = 'script-src eval'
/** Where a browser leads a frame that it must not fill. */
const REFUSED_FRAME = 'chrome-error://chromewebdata/'

const urlOf = ({ port }: Service) => `http://127.0.0.1:${port}`

/** What a page might do that somebody has put something into, and what the browser says that it keeps it from. */
const REFUSALS = {
  'a script of its own': 'script-src-elem inline',
  'a handler in an attribute': 'script-src-attr inline',
  'a script from elsewhere': 'script-src-elem elsewhere/script.js',
  'code made of text': 'script-src eval',
  'a worker': 'worker-src blob',
  'an image from elsewhere': 'img-src elsewhere/image.png',
  'a style sheet from elsewhere': 'style-src-elem elsewhere/style.css',
  'a frame': 'frame-src elsewhere',
  'an object': 'object-src elsewhere',
  'a request elsewhere': 'connect-src elsewhere/fetch',
  'a beacon elsewhere': 'connect-src elsewhere/beacon',
  'another base': 'base-uri elsewhere/base',
  'a form': 'form-action elsewhere/form',
}

/** A script that tries all of it, and returns what became of each: the refusal, or that it was done. */
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
  await attempt('code made of text', (done) => {
    try { new Function('')(); done() } catch {}
  })
  await attempt('a worker', (done) => {
    try { new Worker(URL.createObjectURL(new Blob(['postMessage(1)']))).onmessage = done } catch {}
  })
  await attempt('an image from elsewhere', put('img', { src: '${elsewhere}/image.png' }))
  await attempt('a style sheet from elsewhere', put('link', { rel: 'stylesheet', href: '${elsewhere}/style.css' }))
  await attempt('a frame', put('iframe', { src: '${elsewhere}/frame' }))
  await attempt('an object', put('object', { data: '${elsewhere}/object' }))
  await attempt('a request elsewhere', (done) => fetch('${elsewhere}/fetch', { mode: 'no-cors' }).then(done, () => {}))
  await attempt('a beacon elsewhere', () => navigator.sendBeacon('${elsewhere}/beacon'))
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

describe.skipIf(BROWSER_IS_SKIPPED).each(SOCKET_TRANSPORTS)(
  `the page in a browser, $name${BROWSER_NOTE}`,
  (transport) => {
    test(
      'runs under its policy: shows the operations, and tries one out with a token',
      async () => {
        await using service = await startService(transport)
        await service.create({ id: 43, name: 'Monstera of the test' })
        await using browser = await startBrowser()
        const { page, requests, violations } = await browser.open()

        await page.goto(`${urlOf(service)}/docs`)
        for (const name of ['List plants', 'Create a plant', 'Delete a plant']) {
          await page.getByText(name).first().waitFor()
        }
        await page.getByRole('button', { name: 'Test Request' }).first().click()
        const dialog = page.getByRole('dialog')
        await dialog.getByPlaceholder('Token').fill(service.token)
        await dialog.getByRole('button', { name: /^Send Request/ }).click()
        await dialog.getByText('Monstera of the test').waitFor()

        expect(await violations()).toEqual([EVAL_PROBE])
        expect(requests.filter((request) => !request.includes(` ${urlOf(service)}/`))).toEqual([])
        expect(requests.some((request) => request.startsWith(`GET ${urlOf(service)}/plants?`))).toBe(true)
      },
      BROWSER_TIMEOUT_MS,
    )

    test(
      'lets nothing else in, whatever somebody has put into it',
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
      'is shown in no frame',
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
  },
)
