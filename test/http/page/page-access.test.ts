import { describe, expect } from 'bun:test'
import { AUDIENCE, startIssuer } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'
import { pageTests, uiOf, urlOf } from '../support/page.ts'
import { startProxy } from '../support/proxy.ts'

const { testPage, testInChromium } = pageTests()

describe('the way to the page', () => {
  testPage('keeps a token for the tab, or for the browser if one ticks that, until one signs out', async (begin) => {
    const { service, page, ui } = await begin({ plants: ['Fern'], isClosed: true })
    const openTab = async () => {
      const tabPage = await page.context().newPage()
      await tabPage.goto(urlOf(service))
      const tab = uiOf(tabPage)
      await tab.see(/Fern|Access token/)
      return { tab, isSignedIn: (await tab.row(1).count()) === 1 }
    }

    await page.goto(urlOf(service))
    await ui.see('The browser keeps the token on its disk until you sign out')
    await ui.signIn(service.token)
    await ui.row(1).waitFor()
    const ofTab = await ui.stored()
    const beside = await openTab()
    await ui.deletes(1, '“Fern”')
    await ui.undoes('“Fern”')
    await ui.click('Sign out')
    await page.getByRole('checkbox', { name: 'Stay signed in on this browser' }).check()
    await ui.signIn(service.token)
    await ui.row(1).waitFor()
    const ofBrowser = await ui.stored()
    const later = await openTab()
    await later.tab.click('Sign out')
    await later.tab.button('Sign in').waitFor()

    expect(ofTab.map((text) => text.includes(service.token))).toEqual([true, false])
    expect(ofBrowser.map((text) => text.includes(service.token))).toEqual([false, true])
    expect([beside.isSignedIn, later.isSignedIn]).toEqual([false, true])
    expect(await later.tab.stored()).toEqual(['{}', '{}'])
  })

  testPage('a sign-out asks while plants change, and ends Undo and the tabs with the same token', async (begin) => {
    const { service, page } = await begin({ plants: ['Fern', 'Ivy'], isClosed: true })
    const { text: other } = await service.createToken({ user: 'other' })
    const { text: ending, id } = await service.createToken()
    const asked: string[] = []
    const openTab = async (token: string) => {
      const tabPage = await page.context().newPage()
      tabPage.on('dialog', (dialog) => {
        asked.push(dialog.type())
        return dialog.dismiss()
      })
      const tab = uiOf(tabPage)
      await tab.visit(service, token)
      return { ...tab, reload: () => tabPage.evaluate('setTimeout(() => location.reload())') }
    }

    const [tab, same, another] = [await openTab(service.token), await openTab(service.token), await openTab(other)]
    await tab.deletes(1, '“Fern”')
    const slow = await tab.hold('DELETE', '/plants/2')
    await tab.click('Delete plant 2')
    await slow.begun
    await tab.click('Sign out')
    await tab.reload()
    await until('the browser asks', () => asked.length === 2)
    slow.release()
    await tab.told('Deleted “Ivy”.')
    await tab.undoes('2 plants')
    await same.deletes(2, '“Ivy”')
    await tab.click('Sign out')
    await tab.button('Sign in').waitFor()
    await same.see('You have signed out in another tab.')
    await another.see('You have no plants yet.')
    const kept = [await tab.stored(), await same.stored()]
    const undos = [await same.undo().count()]
    await tab.signIn(ending)
    await tab.deletes(1, '“Fern”')
    await tab.see('You have no plants yet.')
    await service.store.revokeTokens({ id }, Date.now())
    await until('the token is refused', async () => (await service.list('', { token: ending })).status !== 200)
    await tab.ends()
    await tab.signIn(service.token)
    await tab.see('You have no plants yet.')

    expect(asked).toEqual(['confirm', 'beforeunload'])
    expect(kept.flat()).toEqual(['{}', '{}', '{}', '{}'])
    expect([...undos, await tab.undo().count()]).toEqual([0, 0])
  })

  testPage('what is typed outlives the page and its token, and neither a sign-out nor the next user', async (begin) => {
    const { service, page, ui } = await begin({ plants: [{ id: 1, name: 'Fern', tag: 'shade' }], isClosed: true })
    const { text: other } = await service.createToken({ user: 'other' })
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      // Firefox has a sentence of its own for that.
      asked.push(dialog.type() === 'beforeunload' ? 'beforeunload' : dialog.message())
      return dialog.accept()
    })
    const typed = async () => {
      await page.getByRole('form').waitFor()
      return Promise.all(['Id', 'Name', 'Tag (optional)'].map((each) => ui.field(each).inputValue()))
    }
    /** Signs in with a token, does something, and lets the token end. */
    const endsAfter = async (act: () => Promise<void>) => {
      const { text: token, id } = await service.createToken()
      await ui.signIn(token)
      await act()
      await service.store.revokeTokens({ id }, Date.now())
      await until('the token is refused', async () => (await service.list('', { token })).status !== 200)
      await ui.ends()
    }
    const seen: unknown[] = []

    await page.goto(urlOf(service))
    await endsAfter(async () => {
      await ui.click('Edit plant 1')
      await ui.field('Name').fill('Ficus')
      await ui.field('Tag (optional)').fill('')
      await page.reload()
      seen.push(await typed())
      await page.getByRole('link', { name: 'API' }).click()
      await page.waitForURL('**/docs')
      await page.goBack()
      seen.push(await typed())
    })
    await ui.signIn(service.token)
    seen.push(await typed())
    await ui.click('Store the change')
    await ui.told('Changed to “Ficus”.')
    await ui.newPlant()
    await ui.field('Name').fill('Secret')
    await ui.click('New plant')
    await ui.click('Sign out')
    await ui.button('Sign in').waitFor()
    await endsAfter(async () => {
      await ui.row(1).waitFor()
      seen.push(await page.getByRole('form').count())
      await ui.newPlant()
      await ui.field('Name').fill('Secret')
    })
    await ui.signIn(other)
    await ui.see('You have no plants yet.')

    const changed = ['1', 'Ficus', '']
    expect(seen).toEqual([changed, changed, changed, 0])
    expect(asked).toEqual(['beforeunload', 'beforeunload', 'Sign out? The text in the form is lost.'])
    expect([await page.getByRole('form').count(), (await ui.stored()).join().includes('Secret')]).toEqual([0, false])
    expect((await service.list('?include=id')).body).toEqual([{ id: 1, name: 'Ficus' }])
  })

  testInChromium('the history has no address and no title of users who have signed out, or ended', async (begin) => {
    const { service, page, ui } = await begin({ plants: 120, isClosed: true })
    const { text: other } = await service.createToken({ user: 'other' })
    const { text: ending, id } = await service.createToken()
    const session = await page.context().newCDPSession(page)
    const personal = async () => {
      const { entries } = await session.send('Page.getNavigationHistory')
      return entries.map(({ url, title }) => `${url} ${title}`).filter((text) => /era|after|plants|Plants/.test(text))
    }
    const walk = async () => {
      await ui.search().fill('era 42')
      await ui.row(42).getByRole('link').click()
      await page.getByRole('heading', { name: 'Monstera 42' }).waitFor()
      await page.goBack()
      await ui.click('Show all')
      await ui.link('Next').click()
      await ui.row(100).waitFor()
      await page.reload()
      await ui.row(100).getByRole('link').click()
      await page.getByRole('heading', { name: 'Monstera 100' }).waitFor()
      await page.goBack()
      await ui.row(100).waitFor()
    }

    // A step back from a sign-out is none of the next user.
    await ui.visit(service)
    await ui.click('Sign out')
    await ui.button('Sign in').waitFor()
    await page.goBack()
    await ui.signIn(service.token)
    await ui.click('Sign out')
    await ui.button('Sign in').waitFor()
    await ui.visit(service)
    await walk()
    const before = await personal()
    // Not even if the page cannot be loaded again.
    await page.context().setOffline(true)
    const failed = page.waitForEvent('framenavigated', (frame) => frame.url().startsWith('chrome-error:'))
    await ui.click('Sign out')
    await failed
    const left = await personal()
    await page.context().setOffline(false)
    await page.goto(urlOf(service))
    await page.goBack()
    const signedOut = [await ui.button('Sign in').count(), new URL(page.url()).hash]
    await ui.signIn(ending)
    await walk()
    await service.store.revokeTokens({ id }, Date.now())
    await until('the token is refused', async () => (await service.list('', { token: ending })).status !== 200)
    await ui.ends()
    await ui.signIn(other)
    await ui.see('You have no plants yet.')
    const hashes = [new URL(page.url()).hash]
    await page.goBack()
    await ui.see('You have no plants yet.')
    hashes.push(new URL(page.url()).hash)
    await ui.search().fill('era')
    // As people clear the data of a page.
    await page.evaluate('sessionStorage.clear()')
    await page.reload()
    await ui.button('Sign in').waitFor()
    hashes.push(new URL(page.url()).hash)

    expect([before.length, left, signedOut]).toEqual([3, [], [1, '#/']])
    expect(hashes).toEqual(['#/', '#/', '#/'])
  })

  testInChromium('has words before its script comes, without JavaScript, and while it signs in', async (begin) => {
    const { service, page, open, ui } = await begin({ plants: ['Fern'], isClosed: true })
    const script = Promise.withResolvers<void>()
    await page.route('**/assets/page-*.js', (route) => script.promise.then(() => route.continue()))
    const { page: bare } = await open({ javaScriptEnabled: false })
    const words = 'The page is on its way. If it does not come, load it again.'

    await page.goto(urlOf(service), { waitUntil: 'commit' })
    await ui.see(words)
    script.resolve()
    await ui.button('Sign in').waitFor()
    const left = await page.getByText(words).count()
    const slow = await ui.hold('GET', '/token')
    await ui.signIn(service.token)
    await slow.begun
    await ui.told('Signing in…')
    slow.release()
    await ui.row(1).waitFor()
    const told = await ui.status().textContent()
    await bare.goto(urlOf(service))
    const shown = await Promise.all(['noscript p', '.state'].map((each) => bare.locator(each).isVisible()))
    const { x: margin } = (await bare.locator('noscript').first().boundingBox()) ?? {}
    await bare.getByRole('link', { name: 'How to use the API' }).click()
    await bare.getByRole('link', { name: 'What the API is, for programs' }).click()

    expect([left, told]).toEqual([0, ''])
    expect([shown, margin]).toEqual([[true, false], 16])
    expect(new URL(bare.url()).pathname).toBe('/openapi.json')
  })

  testPage('names the user, says read only, and announces the end of the token twice', async (begin) => {
    const { service, page, errors, ui } = await begin({ isClosed: true })
    const MINUTE_MS = 60_000
    const ending = page.getByRole('alert').getByText('This token ends')
    const seen: unknown[] = []
    // The clock of the browser is wrong by hours.
    await page.clock.install({ time: Date.now() + 300 * MINUTE_MS })
    for (const [scope, minutes] of [
      ['write', undefined],
      ['read', 62],
      ['write', 59],
      ['write', 4],
    ] as const) {
      const end = minutes === undefined ? {} : { expiresAtMs: Date.now() + minutes * MINUTE_MS }
      const { text } = await service.createToken({ user: `user ${minutes}`, scope, ...end })
      await ui.visit(service, text)
      const announced: (string | undefined)[] = []
      const look = async () => {
        await ui.see(/^You have no plants yet/)
        const text = (await ending.allTextContents())[0]
        announced.push(/within .*(?=, at )/.exec(text ?? '')?.[0])
        if (text !== undefined) await ui.click('Close')
      }
      await look()
      for (const forth of minutes === 62 ? [3, 50, 5] : []) {
        await page.clock.runFor(forth * MINUTE_MS)
        await look()
      }
      seen.push([await page.locator('header .user').textContent(), ...announced])
      await ui.click('Sign out')
      await ui.button('Sign in').waitFor()
    }
    const asked = await until('all sign-ins are in the log', () => {
      const lines = service.logLines().filter(({ path }) => path === '/token')
      return lines.length === 4 && lines.map(({ operation, status }) => `${operation} ${status}`)
    })

    const hour = 'within the hour'
    expect(seen).toEqual([
      ['user undefined', undefined],
      ['user 62, read only', undefined, hour, undefined, 'within five minutes'],
      ['user 59', hour],
      ['user 4', 'within five minutes'],
    ])
    expect([new Set(asked), errors]).toEqual([new Set(['getToken 200']), []])
  })

  testPage('takes a JWT if the server does, and lets a password manager keep any token by a name', async (begin) => {
    await using issuer = await startIssuer()
    const screen = { viewport: { width: 375, height: 812 } }
    const jwt = { issuer: issuer.issuer, audience: AUDIENCE }
    const { service, page, ui } = await begin({ jwt, screen, isClosed: true })
    const sub = 'ada '.repeat(200)
    const token = page.getByLabel('Access token')
    const attributes = () =>
      page.evaluate<readonly unknown[]>(
        `[...document.querySelectorAll('.sign-in input:not([type=checkbox])')].map((each) => [each.name, each.type, each.autocomplete])`,
      )

    await page.goto(urlOf(service))
    await ui.see(/begins with eyJ/)
    await token.fill('secret')
    const hidden = await attributes()
    await ui.click('Show the token')
    const shown = await attributes()
    await ui.signIn(await issuer.token({ scope: 'email' }))
    await ui.see('This token may not do that. Sign in with one that may read your plants')
    const users: unknown[] = []
    for (const around of [
      `My token: “${await issuer.token({ sub, scope: 'plants:read' })}”.`,
      `"Bearer ${service.token}"`,
    ]) {
      await ui.signIn(around)
      await ui.see('You have no plants yet.')
      users.push(await page.locator('header .user').textContent())
      await ui.click('Sign out')
    }

    const name = ['name', 'text', 'username']
    expect(hidden).toEqual([['token', 'password', 'current-password'], name])
    expect(shown).toEqual([['token', 'text', 'current-password'], name])
    expect(users).toEqual([`${sub}, read only`, 'me'])
    expect(await ui.scrollWidth()).toBe(375)
  })

  testPage('forgets a sign-in that still waits once another token signs in', async (begin) => {
    const { service, page, ui } = await begin({ plants: ['Fern'], isClosed: true })
    const { text: other } = await service.createToken({ user: 'other' })
    await service.create({ id: 1, name: 'Ivy' }, { token: other })
    const held = Promise.withResolvers<void>()
    await page.route('**/token', async (route) => {
      if (route.request().headers().authorization === `Bearer ${service.token}`) await held.promise
      await route.continue()
    })

    await ui.visit(service)
    await ui.signIn(other)
    await ui.see('Ivy')
    const late = ui.answered(/token$/)
    held.resolve()
    await late
    await ui.deletes(1, '“Ivy”')
    const kept = JSON.stringify(await ui.stored())
    await ui.click('Sign out')
    // Signing out loads the page again.
    await ui.button('Sign in').waitFor()
    await page.context().setOffline(true)
    await ui.signIn(service.token)
    await ui.see('The server cannot be reached.')
    await page.context().setOffline(false)
    await ui.signIn(other)
    await ui.see('You have no plants yet.')

    expect(await page.getByText('The server cannot be reached.').count()).toBe(0)
    expect([kept.includes(other), kept.includes(service.token)]).toEqual([true, false])
    expect([await service.names(), await service.names(other)]).toEqual([['Fern'], []])
  })

  testInChromium('a read token sees and does only what it can, and is signed out once it is revoked', async (begin) => {
    const { service, page, ui } = await begin({ plants: 60, isClosed: true })
    const { text: token, id } = await service.createToken({ scope: 'read' })
    await ui.visit(service, token)
    const controls = async () => {
      const all = page.getByRole('button').or(page.getByRole('textbox')).or(page.getByRole('checkbox'))
      return [...new Set(await all.allTextContents())]
    }

    await ui.row(50).waitFor()
    const ofList = await controls()
    await ui.search().fill('era 6')
    await ui.see('On all pages: 2 plants with “era 6” among 60.')
    const lines = await Bun.file(await ui.downloaded()).text()
    await ui.row(60).focus()
    await page.keyboard.press('Delete')
    await page.keyboard.press('n')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Monstera 60' }).waitFor()
    const ofPlant = await controls()
    await service.store.revokeTokens({ id }, Date.now())
    await until('the token is refused', async () => (await service.list('', { token })).status !== 200)
    await ui.ends()

    const around = ['Skip to the plants', 'Sign out']
    expect(ofList).toEqual([...around, 'Refresh', 'Keys', 'evergreen'])
    expect(ofPlant).toEqual([...around, 'Refresh', 'Keys'])
    expect(lines.split('\n').length).toBe(61)
    expect((await service.names()).length).toBe(60)
    expect(await page.evaluate<number>('sessionStorage.length')).toBe(0)
  })

  testInChromium(
    'has a column and an input for each field of the server, and a fourth one fits on a phone',
    async (begin) => {
      const plants = ['{"id":9223372036854775807,"name":"Monstera deliciosa","tag":"evergreen"}']
      const screen = { viewport: { width: 375, height: 812 } }
      const { service, page, ui } = await begin({ plants, screen, isClosed: true })
      /** Answers as a server whose plants have one field more. */
      const add = (path: string, text: string, replacement: string) =>
        page.route(path, async (route) => {
          const response = await route.fetch()
          await route.fulfill({ response, body: (await response.text()).replace(text, replacement) })
        })
      await add(urlOf(service), '"id name tag?"', '"id name tag? light?"')
      await add('**/plants?*', '"tag":"evergreen"', '"tag":"evergreen","light":"half shade"')
      await add('**/plants/2', '"Moss"', '"Moss","light":"north"')

      await ui.visit(service)
      await ui.see('half shade')
      const columns = await page.getByRole('columnheader').or(page.locator('th')).allTextContents()
      const width = await ui.scrollWidth()
      await ui.click('New plant')
      const sent = page.waitForRequest((request) => request.method() === 'PUT')
      await ui.send({ Id: '2', Name: 'Moss', 'Light (optional)': 'north' })
      await ui.told('Added “Moss” (north).')
      await page.unrouteAll({ behavior: 'ignoreErrors' })

      expect([columns, width]).toEqual([['Id', 'Name', 'Tag', 'Light'], 375])
      expect((await sent).postData()).toBe('{"id":2,"name":"Moss","light":"north"}')
    },
  )

  testPage('works behind a path prefix with the documentation, which gets no token of the tab', async (begin) => {
    const { service, page, requests, ui } = await begin({ plants: ['Fern'], isClosed: true })
    using proxy = startProxy(service)
    proxy.answer(({ url }) => (url.includes('/garden/') ? undefined : new Response(null, { status: 400 })))
    const garden = `${urlOf(proxy)}garden/`
    const authorizations: (string | undefined)[] = []

    await page.goto(garden)
    await ui.signIn(service.token)
    await page.getByRole('link', { name: 'Fern' }).click()
    await page.getByRole('heading', { name: 'Fern' }).waitFor()
    page.on('request', (request) => authorizations.push(request.headers().authorization))
    await page.getByRole('link', { name: 'API' }).click()
    await page.getByRole('button', { name: /Test Request.*get .plants.$/i }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: /^Send/ }).first().click()
    // The library sends a line without a token.
    await dialog.getByText('40102').first().waitFor()

    expect(requests.filter((request) => !request.includes(` ${garden}`))).toEqual([])
    expect(requests).toContain(`GET ${garden}plants?limit=20&include=id`)
    expect(authorizations.filter((line) => line?.includes(service.token))).toEqual([])
  })
})
