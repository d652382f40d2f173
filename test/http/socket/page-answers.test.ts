import { describe, expect } from 'bun:test'
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
        proxy.answer(({ url }) => (new URL(url).pathname === path ? FOREIGN[lie]?.() : undefined))
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
      '/plants/none',
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
      () => ui.undoes(1, '“Fern”'),
    )
    await ui.click('New plant')
    await acts(
      all,
      '/plants',
      () => ui.send({ Name: 'Moss' }),
      () => ui.told('Added “Moss”.'),
    )

    expect(seen).toEqual([
      ['a login page', '/plants/none', ''],
      ...['/plants', '/plants/1', '/plants'].flatMap((path) => all.map((lie) => [lie, path, ''])),
    ])
    expect(await said()).toEqual([])
    expect(errors.filter((error) => !error.startsWith('Failed to load resource'))).toEqual([])
    expect(await service.names()).toEqual(['Fern', 'Ivy', ...all.map(() => 'Moss')])
  })
})
