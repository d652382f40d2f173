import { expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { providerUserName } from '../../../src/domain/token.ts'
import type { SignInClient } from '../../../src/http/jwt/sign-in.ts'
import { AUDIENCE, sign, startIssuer } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'
import { pageTests, uiOf, urlOf } from '../support/page.ts'
import { signInOf } from '../support/pages.ts'
import { startProxy } from '../support/proxy.ts'
import type { Service } from '../support/service.ts'
import { logIn, startSignInProvider } from '../support/sign-in-provider.ts'
import { WITHOUT_TOO_NEW } from '../support/too-new.ts'

const { testPage, testInChromium } = pageTests()
type Begin = Parameters<Parameters<typeof testPage>[1]>[0]

const CLIENT: SignInClient = { clientId: 'page', parameters: [] }

/** Waits until the page of a service knows the endpoints of its provider. */
const providerKnown = (service: Service) =>
  until('the provider is known', async (see) => {
    const { text } = await service.request('GET', '/', { token: null, headers: { accept: 'text/html' } })
    return see(signInOf(text)).server.token_endpoint
  })

/** A page whose people sign in with a provider. */
async function openPage(begin: Begin, issuer: string, client = CLIENT) {
  const begun = await begin({ jwt: { issuer, audience: AUDIENCE, client }, screen: {}, isClosed: true })
  await providerKnown(begun.service)
  return { ...begun, pageUrl: urlOf(begun.service), button: begun.ui.button(`Sign in with ${new URL(issuer).host}`) }
}

testPage('people sign in with an identity provider, return to the address they had, and sign out', async (begin) => {
  await using provider = await startSignInProvider()
  const { page, ui, requests, violations, service, pageUrl, button } = await openPage(begin, provider.issuer)
  provider.state.pageUrl = pageUrl

  await page.goto(`${pageUrl}#/?filter=er`)
  await button.waitFor()
  const others = requests.filter((each) => !each.includes(` ${pageUrl}`))
  await button.click()
  await logIn(page, 'ada')
  await page.locator('header .user').getByText('ada Lovelace').waitFor()
  const returned = page.url()
  await ui.newPlant()
  await ui.send({ Name: 'Fern' })
  await ui.told('Added “Fern”.')
  await ui.click('Close')
  await page.reload()
  await ui.click('Edit plant 1')
  await ui.send({ Name: 'Heather' }, 'Store the change')
  await ui.told('Changed to “Heather”.')
  await ui.deletes(1, '“Heather”')
  const violated = await violations()
  const besidePage = await page.context().newPage()
  const beside = uiOf(besidePage)
  await besidePage.goto(pageUrl)
  await beside.button(`Sign in with ${new URL(provider.issuer).host}`).click()
  await beside.button('New plant').waitFor()
  await ui.click('Sign out')
  await page.getByRole('button', { name: 'Yes, sign me out' }).click()
  await button.waitFor()
  await beside.see('You have signed out in another tab.')
  const kept = [...(await ui.stored()), ...(await beside.stored())]
  await button.click()
  await page.locator('[name=password]').waitFor()

  expect([others, returned, violated]).toEqual([[], `${pageUrl}#/?filter=er`, []])
  expect(kept).toEqual(['{}', '{}', '{}', '{}'])
  expect(await service.store.findUser(providerUserName(provider.issuer, 'ada'))).toBeDefined()
  expect(service.logs()).not.toMatch(/code=|eyJ/)
})

testPage('an ended sign-in takes one click and no password, and a sign-out ends one under way', async (begin) => {
  await using provider = await startSignInProvider()
  const { page, ui, service, pageUrl, button } = await openPage(begin, provider.issuer)
  provider.state.pageUrl = pageUrl
  await page.addInitScript(WITHOUT_TOO_NEW)
  const block = (atMs?: number) =>
    service.store.setUserBlock(providerUserName(provider.issuer, 'ada'), atMs, atMs !== undefined)

  await page.goto(pageUrl)
  await button.click()
  await logIn(page, 'ada')
  await ui.newPlant()
  await ui.field('Name').fill('Fern')
  await block(Date.now())
  await ui.click('Refresh')
  await ui.see('Your sign-in has ended. Sign in again.')
  const ended = await ui.stored()
  await button.click()
  await ui.see('This server does not accept your sign-in: ask its operator whether you are blocked.')
  await block()
  await button.click()
  await ui.click('Add')
  await ui.told('Added “Fern”.')

  await ui.click('Sign out')
  await page.getByRole('button', { name: 'Yes, sign me out' }).click()
  await button.click()
  const slow = await ui.hold('POST', '/token')
  await logIn(page, 'ada')
  await slow.begun
  await ui.click('Sign out')
  slow.release()
  await page.getByRole('button', { name: 'Yes, sign me out' }).click()
  await button.waitFor()

  expect(ended[0]).toContain('Fern')
  expect(ended.join()).not.toMatch(/eyJ|verifier|Lovelace/)
  expect(await ui.stored()).toEqual(['{}', '{}'])
})

type Good = Readonly<Record<'code' | 'state' | 'iss', string>>
/** What a provider answers to a sign-in. */
type Answer = (good: Good) => Readonly<Record<string, string>> | string

/** A provider whose answers the test decides. Its tokens are for `ada`, who may write. */
async function startActor() {
  const issuer = await startIssuer()
  const metadata = {
    ...issuer.metadata,
    authorization_endpoint: `${issuer.origin}/authorize`,
    token_endpoint: `${issuer.origin}/token`,
    authorization_response_iss_parameter_supported: true,
    id_token_signing_alg_values_supported: [issuer.key.alg],
    response_modes_supported: ['fragment'],
  }
  issuer.state.answers.set('/.well-known/openid-configuration', () => Response.json(metadata))
  /** What a page of another origin may read. */
  const allow = (body: object, status = 200) =>
    Response.json(body, { status, headers: { 'access-control-allow-origin': '*' } })
  return {
    ...issuer,
    host: new URL(issuer.issuer).host,
    allow,
    /** The answer with a token that has these claims, and with an ID token. */
    async grant(claims = {}, others = {}) {
      const idToken = issuer.claims({ aud: 'page', iat: Math.floor(Date.now() / 1000), preferred_username: 'Ada' })
      const tokens = { access_token: await issuer.token(claims), id_token: await sign(issuer.key, idToken) }
      return allow({ ...tokens, token_type: 'Bearer', ...others })
    },
    answerToken: (answer: () => Response | Promise<Response>) => void issuer.state.answers.set('/token', answer),
    /** How often a code has come. */
    exchanges: () => issuer.state.requests.filter((each) => each === '/token').length,
    /** Answers each sign-in of a page at once. */
    async answer(page: Page, answer: Answer = (good) => good) {
      const path = `${issuer.origin}/authorize?*`
      await page.unroute(path)
      await page.route(path, (route) => {
        const asked = new URL(route.request().url()).searchParams
        const good = { code: 'secret-code', state: `${asked.get('state')}`, iss: issuer.issuer }
        const target = `${asked.get('redirect_uri')}#${new URLSearchParams(answer(good))}`
        const body = `<script>location.replace(${JSON.stringify(target)})</script>`
        return route.fulfill({ contentType: 'text/html', body })
      })
    },
  }
}

const OTHER = 'This tab has not begun that sign-in, or has used its answer before: sign in once more.'
const UNUSABLE = /^This answer cannot be used, so you are not signed in: /

testInChromium(
  'an answer that is none to the sign-in of the tab is refused, and no code leaves',
  async (begin) => {
    await using actor = await startActor()
    actor.answerToken(actor.grant)
    const { page, ui, pageUrl, button } = await openPage(begin, actor.issuer)
    const evil = { error: 'access_denied', error_description: 'evil words' }
    const other = 'https://evil.example.org'
    const said = { error: 'invalid_scope', error_description: 'no such scope' }
    const refused: readonly [Answer, string | RegExp][] = [
      [({ code: _, ...others }) => ({ ...others, ...evil }), `You have not signed in with ${actor.host}.`],
      [({ code: _, ...others }) => ({ ...others, ...said }), 'refuses this sign-in. It says: “no such scope”'],
      [({ state: _, ...others }) => others, OTHER],
      [(good) => ({ ...good, state: 'x' }), OTHER],
      [(good) => `${new URLSearchParams(good)}&state=${good.state}`, UNUSABLE],
      [(good) => ({ ...good, iss: other }), UNUSABLE],
      [({ iss: _, ...others }) => others, UNUSABLE],
      [({ iss }) => ({ ...evil, state: 'x', iss }), OTHER],
      [({ state }) => ({ ...evil, state, iss: other }), UNUSABLE],
    ]
    const open = async (address: string) => {
      await page.goto('about:blank')
      await page.goto(address)
    }

    for (const [answer, text] of refused) {
      await open(pageUrl)
      await actor.answer(page, answer)
      await button.click()
      await ui.see(text)
      expect([page.url(), await page.getByText('evil words').count()]).toEqual([`${pageUrl}#/`, 0])
      expect(await ui.stored()).toEqual(['{}', '{}'])
    }
    expect(actor.exchanges()).toBe(0)

    let used = ''
    await actor.answer(page, (good) => {
      used = `${pageUrl}#${new URLSearchParams(good)}`
      return good
    })
    await button.click()
    await ui.button('New plant').waitFor()
    for (const address of [used, `${pageUrl}#code=x&state=y`, `${pageUrl}?error=access_denied&state=y`]) {
      await open(address)
      await ui.button('New plant').waitFor()
      expect(page.url()).toBe(`${pageUrl}#/`)
    }
    await ui.click('Sign out')
    await button.waitFor()
    await open(used)
    await ui.see(OTHER)
    expect(actor.exchanges()).toBe(1)
  },
  { isLong: true },
)

testInChromium(
  'a token that cannot be used, and a provider that is away, each have their sentence, and clocks may be wrong',
  async (begin) => {
    await using actor = await startActor()
    const { page, ui, pageUrl, button } = await openPage(begin, actor.issuer)
    const away = 'does not answer this page. Sign in again later, or tell the operator of this server.'
    const refused: readonly [() => Response | Promise<Response>, string][] = [
      [() => actor.allow({}, 502), away],
      // The provider allows no other origin.
      [() => Response.json({}), away],
      [() => actor.grant({}, { access_token: 'opaque' }), 'is no JWT, so this server cannot read it'],
      [() => actor.allow({ error: 'invalid_grant' }, 400), 'refuses this sign-in. It says: “invalid_grant”'],
      [() => actor.grant({ scope: 'email' }), 'Your sign-in may not do that here: ask the operator for the scope'],
      [() => actor.grant({ aud: 'x' }), 'This server does not accept your sign-in'],
    ]

    await actor.answer(page)
    for (const [answer, text] of refused) {
      await page.goto(pageUrl)
      actor.answerToken(answer)
      await button.click()
      await ui.see(text)
      expect([page.url(), ...(await ui.stored())]).toEqual([`${pageUrl}#/`, '{}', '{}'])
    }

    const users: (string | null)[] = []
    for (const [scope, minutes] of [
      ['plants:read', 0],
      ['plants:write', 10],
      ['plants:write', -10],
      ['plants:write', 400 * 24 * 60],
    ] as const) {
      actor.answerToken(() => actor.grant({ scope }))
      await page.clock.setFixedTime(Date.now() + minutes * 60_000)
      await button.click()
      await ui.see('You have no plants yet.')
      users.push(await page.locator('header .user').textContent())
      await ui.click('Sign out')
    }
    expect(users).toEqual(['Ada, read only', 'Ada', 'Ada', 'Ada'])
  },
  { isLong: true },
)

testInChromium(
  'a page behind a prefix signs in, by a query too, and leaves no code in the log; without TLS it says why not',
  async (begin) => {
    await using provider = await startSignInProvider()
    const parameters = [['response_mode', 'query'] as const]
    const { page, ui, service, pageUrl, button } = await openPage(begin, provider.issuer, { ...CLIENT, parameters })
    using proxy = startProxy(service)
    provider.state.pageUrl = `${urlOf(proxy)}garden/`

    await page.goto(pageUrl)
    await button.click()
    await page.getByText('redirect_uri did not match').waitFor()
    await page.goto(`${provider.state.pageUrl}#/plants/1`)
    await button.click()
    await logIn(page, 'ada')
    await ui.see('You have no plant with this id.')
    const returned = page.url()
    const popup = page.waitForEvent('popup')
    await page.evaluate('void open(location.href)')
    const copied = uiOf(await popup)
    await copied.see('You have no plant with this id.')
    await page.route('http://plants.lan/**', async (route) =>
      route.fulfill({
        response: await route.fetch({ url: route.request().url().replace('http://plants.lan/', pageUrl) }),
      }),
    )
    await page.goto('http://plants.lan/')
    await ui.see(
      `To sign in with ${new URL(provider.issuer).host}, open this page at an address that begins with https.`,
    )

    expect([returned, await button.count()]).toEqual([`${provider.state.pageUrl}#/plants/1`, 0])
    expect(service.logs()).not.toMatch(/code|verifier|eyJ/)
  },
  { isLong: true },
)

testInChromium(
  'a page whose server cannot reach the provider says so, and takes tokens',
  async (begin) => {
    const jwt = { issuer: 'http://127.0.0.1:1', audience: AUDIENCE, client: CLIENT }
    const { page, ui, service } = await begin({ jwt, isClosed: true })
    await page.goto(urlOf(service))
    await ui.see('The server cannot reach 127.0.0.1:1: to sign in there, load this page again in a minute.')
    await ui.signIn(service.token)
    await ui.see('You have no plants yet.')
  },
  { isLong: true },
)
