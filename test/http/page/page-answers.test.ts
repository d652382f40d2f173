import { describe, expect } from 'bun:test'
import { until } from '../../support/until.ts'
import { pageTests, urlOf } from '../support/page.ts'
import { startProxy } from '../support/proxy.ts'

const { testPage } = pageTests()

const LOGIN = '<!doctype html><title>Sign in</title>'
const loginPage = (status: number, type = 'text/html') =>
  new Response(LOGIN, { status, headers: { 'content-type': type } })

/** What portals and proxies answer in the place of the server. */
const FOREIGN: Readonly<Record<string, () => Response>> = {
  'a login page': () => loginPage(200),
  'a login page as 201': () => loginPage(201),
  'a login page that says it is JSON': () => loginPage(200, 'application/json'),
  'JSON of its own': () => Response.json({ login: '/login' }),
  'a list of its own': () => Response.json([{ href: '/login' }]),
  null: () => Response.json(null),
  'nothing with 200': () => new Response(null),
  'a way to a login page': () => new Response(null, { status: 302, headers: { location: '/login' } }),
  'a refusal as HTML': () => loginPage(403),
  'a refusal in JSON of its own': () => Response.json({ error: 'forbidden' }, { status: 401 }),
  'an error of another status': () => Response.json({ error: 40402, message: 'no' }, { status: 403 }),
  'no such page': () => loginPage(404),
  'the status of portals': () => loginPage(511),
}
const SENTENCE = 'Something between this browser and the server answered: sign in there, then try again.'

describe('answers on the way to the page', () => {
  testPage('an answer that is not of the service is none, whatever it says', async (begin) => {
    const { service, page, errors, ui } = await begin({ plants: ['Fern', 'Ivy'], isClosed: true })
    using proxy = startProxy(service)
    const said = await ui.recordTexts(['Somebody', 'does not accept', 'no plant'])
    const seen: unknown[] = []
    /** Lets each of these answer in the place of the server, then tries again, which succeeds. */
    const acts = async (
      lies: readonly string[],
      path: string,
      act: () => Promise<unknown>,
      end: () => Promise<void>,
    ) => {
      for (const lie of lies) {
        proxy.answer(({ url }) => (RegExp(`^${path}$`).test(new URL(url).pathname) ? FOREIGN[lie]?.() : undefined))
        await act()
        await ui.see(SENTENCE)
        seen.push([lie, path, await ui.status().textContent()])
        proxy.answer()
        await ui.tryNow()
        await end()
      }
    }
    const all = Object.keys(FOREIGN)

    await page.goto(urlOf(proxy))
    await acts(
      ['a login page'],
      '/token',
      () => ui.signIn(service.token),
      () => ui.row(1).waitFor(),
    )
    await acts(
      all,
      '/plants',
      () => page.reload(),
      () => ui.row(1).waitFor(),
    )
    await acts(
      all,
      '/plants/1',
      () => ui.click('Delete plant 1'),
      () => ui.undoes('“Fern”'),
    )
    await ui.newPlant()
    await acts(
      all,
      '/plants/\\d+',
      () => ui.send({ Name: 'Moss' }),
      () => ui.told('Added “Moss”.'),
    )

    expect(seen).toEqual([
      ['a login page', '/token', 'Signing in…'],
      ...['/plants', '/plants/1', '/plants/\\d+'].flatMap((path) => all.map((lie) => [lie, path, ''])),
    ])
    expect(await said()).toEqual([])
    expect(errors.filter((error) => !error.startsWith('Failed to load resource'))).toEqual([])
    expect(await service.names()).toEqual(['Fern', 'Ivy', ...all.map(() => 'Moss')])
  })

  for (const [what, isDone] of [
    ['was done', true],
    ['did not arrive', false],
  ] as const)
    testPage(`a change that one gives up is not known, and told once the server answers: it ${what}`, async (begin) => {
      const { service, page, ui } = await begin({ plants: ['Fern', 'Ivy', 'Moss'], isClosed: true })
      using proxy = startProxy(service)
      const away = () => new Response(null, { status: 502 })
      const doubt = page.getByText(/It is not known whether this was (stored|deleted)[.:]/)
      const counts: number[] = []
      /** Gives up a change whose answer is lost, then what looks at the plant, then nothing: returns what the page tells. */
      const giveUp = async (method: string, act: () => Promise<void>) => {
        proxy.answer((request, ask) => {
          if (request.method !== method) return
          proxy.answer(away)
          return isDone ? ask().then(away) : away()
        })
        await act()
        await ui.see('The server cannot be reached.')
        await ui.click('Give up')
        await doubt.waitFor()
        counts.push(await doubt.count())
      }
      const goesOn = async (done: string, notDone: string) => {
        proxy.answer()
        await ui.tryNow()
        await page.getByText(isDone ? done : notDone).waitFor()
      }

      await page.goto(urlOf(proxy))
      await ui.signIn(service.token)
      await giveUp('DELETE', () => ui.click('Delete plant 1'))
      await goesOn('Deleted “Fern”.', 'The server has not deleted this: try again.')
      if (!isDone) await ui.deletes(1, '“Fern”')
      await giveUp('PUT', () => ui.undo().click())
      await goesOn('Restored “Fern”.', 'The server has not stored this: try again.')
      if (!isDone) await ui.undoes('“Fern”')
      await ui.click('Edit plant 2')
      await giveUp('PUT', () => ui.send({ Name: 'Lily' }, 'Store the change'))
      await goesOn('Changed to “Lily”.', 'The server has not stored this: try again.')
      if (!isDone) await ui.click('Store the change')
      await ui.told('Changed to “Lily”.')

      // Who gives up the look at the plant as well is told that once more.
      await ui.click('New plant')
      await giveUp('PUT', () => ui.send({ Name: 'Aloe' }))
      await ui.click('Give up')
      await page.getByRole('form').getByText('It is not known whether this was stored: the server cannot').waitFor()
      counts.push(await doubt.count())
      await ui.click('Give up')
      proxy.answer()
      await ui.click('Add')
      await ui.told('Added “Aloe”.')
      await giveUp('DELETE', async () => {
        for (const id of [2, 3]) await page.getByRole('checkbox', { name: `Select plant ${id}` }).check()
        await ui.click('Delete selected')
      })
      for (const text of [/^It is not known whether this was deleted: the server/, /^This is the list from before/]) {
        const end = page.locator('[role=status], [role=alert]').getByText(text)
        const giveUpOrEnd = () => ui.button('Give up').or(end).first().click()
        await until('both are given up', async (see) => see(await end.isVisible()) || void (await giveUpOrEnd()))
        counts.push(await doubt.count())
      }
      proxy.answer()
      await ui.click('Delete plant 2')
      await ui.told(isDone ? '“Lily” is deleted.' : 'Deleted “Lily”.')
      await ui.row(2).waitFor({ state: 'detached' })

      expect(counts).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
      expect(await service.names()).toEqual(['Fern', 'Moss', 'Aloe'])
    })

  testPage(
    'a list that denies what was answered is read once more, and a 429 leaves a lost answer in doubt',
    async (begin) => {
      const { service, page, ui } = await begin({ plants: ['Fern', 'Ivy'], isClosed: true })
      using proxy = startProxy(service)
      const before = (await service.list('?limit=50&include=id')).body
      let reads = 0

      // The page looks for a lag of 100 ms. A busy browser may read later than that.
      await page.addInitScript('const later = setTimeout; setTimeout = (act, ms) => later(act, ms === 100 ? 2e3 : ms)')
      await page.goto(urlOf(proxy))
      await ui.signIn(service.token)
      await ui.row(1).waitFor()
      await page.evaluate(`globalThis.seen = new Set(), void new MutationObserver(() =>
      globalThis.seen.add(document.querySelectorAll('tbody tr').length)).observe(document.body, { subtree: true, childList: true })`)
      proxy.answer(({ url }) => (url.includes('limit=50') && ++reads === 1 ? Response.json(before) : undefined))
      await ui.row(1).press('Delete')
      await ui.row(1).waitFor({ state: 'detached' })
      await page.evaluate('globalThis.seen.clear()')
      await until('the list is read once more', () => reads === 2)
      await ui.click('Refresh')
      await until('it is read again', () => reads === 3)

      const lagging = [await page.evaluate<boolean>('globalThis.seen.has(2)'), await ui.names()]
      proxy.answer(({ method }, ask) => {
        if (method !== 'PUT') return
        const busy = () => Response.json({ error: 42901, message: 'no more' }, { status: 429 })
        proxy.answer((request) => (request.method === 'PUT' ? busy() : undefined))
        // A proxy may say that in JSON of its own.
        return ask().then(() => Response.json({ error: 'upstream unavailable' }, { status: 503 }))
      })
      await ui.newPlant()
      await ui.send({ Name: 'Moss' })
      await ui.see('The server cannot be reached.')
      await ui.tryNow()
      await ui.see('The server takes no more requests')
      await ui.click('Give up')
      await ui.told('Added “Moss”.')

      expect(lagging).toEqual([false, ['Ivy']])
      expect(await service.names()).toEqual(['Ivy', 'Moss'])
    },
  )

  testPage(
    'a server that is silent for 30 s, or has a bug, is asked what has happened, and that is told',
    async (begin) => {
      const { service, page, ui } = await begin({ plants: ['Fern', 'Ivy'], isClosed: true })
      using proxy = startProxy(service)
      const silence = () => new Promise<Response>(() => {})
      const bug = () => Response.json({ error: 50000, message: 'The server has a bug.' }, { status: 500 })
      /** Such an answer comes to the next request with this method, which is sent on or not. */
      const answers = async (
        method: string,
        isDone: boolean,
        answer: () => Promise<Response> | Response,
        act: () => unknown,
      ) => {
        const begun = Promise.withResolvers<void>()
        proxy.answer((request, ask) => {
          if (request.method !== method) return
          proxy.answer()
          return (isDone ? ask() : Promise.resolve()).then(() => {
            begun.resolve()
            return answer()
          })
        })
        await act()
        await begun.promise
        if (answer !== bug) await page.clock.runFor(30_000)
      }

      await page.clock.install()
      await page.goto(urlOf(proxy))
      await ui.signIn(service.token)
      await ui.newPlant()
      await answers('PUT', true, silence, () => ui.send({ Name: 'Moss' }))
      await ui.told('Added “Moss”.')
      await answers('PUT', false, bug, () => ui.send({ Id: '4', Name: 'Aloe' }))
      await ui.see('The server has not stored this: try again.')
      await ui.field('Name').fill('')
      await page.keyboard.press('Escape')
      await answers('DELETE', false, silence, () => ui.click('Delete plant 1'))
      await ui.told('The server has not deleted this: try again.')
      // A list whose parts come in time may take longer, until the next one does not come.
      let send = (_part: string) => {}
      const slow = new ReadableStream<Uint8Array>({
        start(stream) {
          send = (part) => stream.enqueue(new TextEncoder().encode(part))
        },
      })
      const isHeard = (parts: number) =>
        until('the page has read it', async () => (await page.evaluate<number>('globalThis.parts')) === parts)
      await page.evaluate(`globalThis.parts = 0, globalThis.enqueue = TransformStreamDefaultController.prototype.enqueue
      TransformStreamDefaultController.prototype.enqueue = function (part) {
        if (part.length === 1) globalThis.parts++
        return enqueue.call(this, part)
      }`)
      send('[')
      let isDeleted = false
      proxy.answer(({ method, url }, ask) => {
        if (url.includes('limit=') && isDeleted) return new Response(slow)
        isDeleted ||= method === 'DELETE'
        return method === 'DELETE' ? ask().then(bug) : undefined
      })
      await ui.click('Delete plant 2')
      await ui.told('Deleted “Ivy”.')
      for (const part of [1, 2, 3, 4]) {
        await isHeard(part)
        await page.clock.runFor(10_000)
        send(' ')
      }
      await isHeard(5)
      const early = await page.locator('.pause').count()
      proxy.answer()
      await page.clock.runFor(30_000)
      await page.locator('.pause').getByText('The server has been silent for 30 seconds.').waitFor()

      expect([early, await service.names()]).toEqual([0, ['Fern', 'Moss']])
    },
  )

  testPage(
    'a plant whose ETag is another one than that of the page is read, and never told as changed',
    async (begin) => {
      const { service, page, ui } = await begin({ plants: ['Fern', 'Ivy'], isClosed: true })
      using proxy = startProxy(service)
      const said = await ui.recordTexts(['has changed it', 'has changed since', 'Somebody'])
      let changed = 0
      /** So many writes get the answer of a server whose tags are of another form. */
      const changeTags = (count: number) => {
        changed = 0
        proxy.answer(({ method, headers }) => {
          if (method !== 'GET' && changed++ < count) headers.set('if-match', '"another"')
          return undefined
        })
      }

      await page.goto(urlOf(proxy))
      await ui.signIn(service.token)
      await ui.row(1).waitFor()
      changeTags(1)
      await ui.deletes(1, '“Fern”')
      changeTags(1)
      await ui.click('Edit plant 2')
      await ui.send({ Name: 'Lily' }, 'Store the change')
      await ui.told('Changed to “Lily”.')
      const counts = [changed]
      for (const act of [
        () => ui.click('Delete plant 2'),
        () => ui.click('Edit plant 2').then(() => ui.send({ Name: 'Moss' }, 'Store the change')),
      ]) {
        changeTags(Number.POSITIVE_INFINITY)
        await act()
        await page.getByText('The server refused this, though nobody has changed the plant.').last().waitFor()
        counts.push(changed)
      }

      expect(counts).toEqual([2, 2, 2])
      expect([await said(), await service.names()]).toEqual([[], ['Lily']])
    },
  )
})
