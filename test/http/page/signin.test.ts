import { expect } from 'bun:test'
import { createServer } from 'node:http'
import { exportJWK } from 'jose'
import Provider from 'oidc-provider'
import type { Page } from 'playwright-core'
import { providerUserName } from '../../../src/domain/token.ts'
import type { SignInClient } from '../../../src/http/jwt/sign-in.ts'
import { AUDIENCE, makeKey, sign, startIssuer } from '../../support/issuer.ts'
import { freePort } from '../../support/postgres-system.ts'
import { until } from '../../support/until.ts'
import { pageTests, uiOf, urlOf } from '../support/page.ts'
import { signInOf } from '../support/pages.ts'
import { startProxy } from '../support/proxy.ts'
import { WITHOUT_TOO_NEW } from '../support/too-new.ts'

const { testPage, testInChromium } = pageTests()
type Begin = Parameters<Parameters<typeof testPage>[1]>[0]

const CLIENT = { clientId: 'page', parameters: [['resource', AUDIENCE] as const] }

/** A page whose people sign in with a provider, which the server has reached. */
async function openPage(begin: Begin, issuer: string, client: SignInClient = CLIENT) {
  const begun = await begin({ jwt: { issuer, audience: AUDIENCE, client }, screen: {}, isClosed: true })
  await until('the provider is known', async (see) => {
    const html = { token: null, headers: { accept: 'text/html' } }
    return see(signInOf((await begun.service.request('GET', '/', html)).text)).server.token_endpoint
  })
  return { ...begun, pageUrl: urlOf(begun.service), button: begun.ui.button(`Sign in with ${new URL(issuer).host}`) }
}

/** A certified provider that knows one page as the client `page`, without a secret. Any name and password sign in. */
async function startSignInProvider() {
  const port = freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { privateKey, alg } = await makeKey('ES256')
  const resource = { scope: 'plants:write', audience: AUDIENCE, accessTokenFormat: 'jwt', jwt: { sign: { alg } } }
  const client = { redirect_uris: [issuer], token_endpoint_auth_method: 'none', id_token_signed_response_alg: alg }
  const known = { pageUrl: '' }
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'key 1', alg, use: 'sig' }] },
    clients: [{ client_id: 'page', ...client }],
    claims: { openid: ['sub'], profile: ['name'] },
    conformIdTokenClaims: false,
    clientBasedCORS: () => true,
    findAccount: (_: object, sub: string) => ({ accountId: sub, claims: () => ({ sub, name: `${sub} Lovelace` }) }),
    features: { resourceIndicators: { enabled: true, getResourceServerInfo: () => resource } },
  })
  // The page is at a port that is known later.
  const isPage = (uri: string) => uri === known.pageUrl
  Object.assign(provider.Client.prototype, { redirectUriAllowed: isPage, postLogoutRedirectUriAllowed: isPage })
  const server = createServer(provider.callback())
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    issuer,
    known,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** What a person does at the provider. */
async function logIn(page: Page): Promise<void> {
  await page.fill('[name=login]', 'ada')
  await page.fill('[name=password]', 'any')
  await page.click('button[type=submit]')
  await page.getByRole('heading', { name: 'Authorize' }).waitFor()
  await page.click('button[type=submit]')
}

testPage('people sign in with an identity provider, return to the address they had, and sign out', async (begin) => {
  await using provider = await startSignInProvider()
  const { page, ui, requests, violations, service, pageUrl, button } = await openPage(begin, provider.issuer)
  provider.known.pageUrl = pageUrl

  await page.goto(`${pageUrl}#/?filter=er`)
  await button.waitFor()
  const others = requests.filter((each) => !each.includes(` ${pageUrl}`))
  await button.click()
  await logIn(page)
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
  expect(service.logs()).not.toMatch(/\bcode\b|eyJ[\w-]+\.eyJ/)
})

testPage('an ended sign-in takes one click and no password, and a sign-out ends one under way', async (begin) => {
  await using provider = await startSignInProvider()
  const { page, ui, service, pageUrl, button } = await openPage(begin, provider.issuer)
  provider.known.pageUrl = pageUrl
  await page.addInitScript(WITHOUT_TOO_NEW)
  const block = (atMs?: number) =>
    service.store.setUserBlock(providerUserName(provider.issuer, 'ada'), atMs, atMs !== undefined)

  await page.goto(pageUrl)
  await button.click()
  await logIn(page)
  await ui.newPlant()
  await ui.field('Name').fill('Fern')
  await block(Date.now())
  await ui.ends('Your sign-in has ended. Sign in again.')
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
  await logIn(page)
  await slow.begun
  await ui.click('Sign out')
  slow.release()
  await page.getByRole('button', { name: 'Yes, sign me out' }).click()
  await button.waitFor()

  expect(ended[0]).toContain('Fern')
  expect(ended.join()).not.toMatch(/eyJ[\w-]+\.eyJ|verifier|Lovelace/)
  expect(await ui.stored()).toEqual(['{}', '{}'])
})

const testLong = (title: string, run: (begin: Begin) => Promise<void>) => testInChromium(title, run, { isLong: true })

type Answer = (good: Readonly<Record<'code' | 'state' | 'iss', string>>) => Readonly<Record<string, string>> | string
type TokenAnswer = () => Response | Promise<Response>

testLong('an answer of a provider is refused if it is not to this sign-in, or of no use', async (begin) => {
  await using issuer = await startIssuer()
  const metadata = {
    ...issuer.metadata,
    authorization_endpoint: `${issuer.origin}/authorize`,
    token_endpoint: `${issuer.origin}/token`,
    authorization_response_iss_parameter_supported: true,
    id_token_signing_alg_values_supported: [issuer.key.alg],
    response_modes_supported: ['fragment'],
  }
  issuer.state.answers.set('/.well-known/openid-configuration', () => Response.json(metadata))
  const { page, ui, pageUrl, button } = await openPage(begin, issuer.issuer)
  const allow = (body: object, status = 200) =>
    Response.json(body, { status, headers: { 'access-control-allow-origin': '*' } })
  const grant = async (claims = {}, others = {}) => {
    const idToken = issuer.claims({ aud: 'page', iat: Math.floor(Date.now() / 1000), preferred_username: 'Ada' })
    const tokens = { access_token: await issuer.token(claims), id_token: await sign(issuer.key, idToken) }
    return allow({ ...tokens, token_type: 'Bearer', ...others })
  }
  const same: Answer = (good) => good
  let [answer, answerToken, used, exchanges]: [Answer, TokenAnswer, string, number] = [same, grant, '', 0]
  issuer.state.answers.set('/token', () => {
    exchanges++
    return answerToken()
  })
  await page.route(`${issuer.origin}/authorize?*`, (route) => {
    const state = `${new URL(route.request().url()).searchParams.get('state')}`
    used = `${pageUrl}#${new URLSearchParams(answer({ code: 'x', state, iss: issuer.issuer }))}`
    return route.fulfill({ contentType: 'text/html', body: `<script>location.replace("${used}")</script>` })
  })
  const open = async (address: string) => {
    await page.goto('about:blank')
    await page.goto(address)
  }
  const other = 'This tab has not begun that sign-in, or has used its answer before: sign in once more.'
  const unusable = /^This answer cannot be used, so you are not signed in: /
  const away = 'does not answer this page. Sign in again later, or tell the operator of this server.'
  const evil = { error: 'access_denied', error_description: 'evil words' }
  const foreign = { iss: 'https://evil.example.org' }
  const refused: readonly [text: string | RegExp, Answer, TokenAnswer?][] = [
    ['You have not signed in with 127.0.0.1:', ({ code: _, ...others }) => ({ ...others, ...evil })],
    [
      'refuses this sign-in. It says: “invalid_scope”',
      ({ code: _, ...others }) => ({ ...others, error: 'invalid_scope' }),
    ],
    [other, ({ state: _, ...others }) => others],
    [other, (good) => ({ ...good, state: 'x' })],
    [other, ({ iss }) => ({ ...evil, state: 'x', iss })],
    [unusable, (good) => `${new URLSearchParams(good)}&state=${good.state}`],
    [unusable, (good) => ({ ...good, ...foreign })],
    [unusable, ({ iss: _, ...others }) => others],
    [unusable, ({ state }) => ({ ...evil, state, ...foreign })],
    [away, same, () => allow({}, 502)],
    [away, same, () => new Promise(() => {})],
    // No other origin may read this one.
    [away, same, () => Response.json({})],
    ['is no JWT, so this server cannot read it', same, () => grant({}, { access_token: 'opaque' })],
    ['refuses this sign-in. It says: “invalid_grant”', same, () => allow({ error: 'invalid_grant' }, 400)],
    ['Your sign-in may not do that here: ask the operator for', same, () => grant({ scope: 'email' })],
    ['This server does not accept your sign-in', same, () => grant({ aud: 'x' })],
  ]

  for (const [text, ...answers] of refused) {
    ;[answer, answerToken = grant] = answers
    await open(pageUrl)
    await button.click()
    await ui.see(text)
    expect([page.url(), await page.getByText('evil words').count()]).toEqual([`${pageUrl}#/`, 0])
    expect(await ui.stored()).toEqual(['{}', '{}'])
  }
  expect(exchanges).toBe(refused.filter(([, , answer]) => answer).length)

  const users: (string | null)[] = []
  for (const minutes of [10, -10, 400 * 24 * 60, 0]) {
    answerToken = () => grant({ scope: 'plants:read' })
    await page.clock.setFixedTime(Date.now() + minutes * 60_000)
    await button.click()
    await ui.see('You have no plants yet.')
    users.push(await page.locator('header .user').textContent())
    if (minutes !== 0) await ui.click('Sign out')
  }
  exchanges = 0
  for (const address of [used, `${pageUrl}#code=x&state=y`, `${pageUrl}?error=access_denied&state=y`]) {
    await open(address)
    await ui.see('You have no plants yet.')
    expect(page.url()).toBe(`${pageUrl}#/`)
  }
  await ui.click('Sign out')
  await button.waitFor()
  await open(used)
  await ui.see(other)
  expect([exchanges, new Set(users)]).toEqual([0, new Set(['Ada, read only'])])
})

testLong('a page behind a prefix signs in, by a query too, leaves no code in the log, and needs TLS', async (begin) => {
  await using provider = await startSignInProvider()
  const parameters = [...CLIENT.parameters, ['response_mode', 'query'] as const]
  const { page, ui, service, pageUrl, button } = await openPage(begin, provider.issuer, { ...CLIENT, parameters })
  using proxy = startProxy(service)
  provider.known.pageUrl = `${urlOf(proxy)}garden/`

  await page.goto(pageUrl)
  await button.click()
  await page.getByText('redirect_uri did not match').waitFor()
  await page.goto(`${provider.known.pageUrl}#/plants/1`)
  await button.click()
  await logIn(page)
  await ui.see('You have no plant with this id.')
  const returned = page.url()
  // The new tab has a copy of the storage.
  const copied = page.waitForEvent('popup')
  await page.evaluate('void open(location.href)')
  await uiOf(await copied).see('You have no plant with this id.')
  await page.route('http://plants.lan/**', async (route) => {
    const url = route.request().url().replace('http://plants.lan/', pageUrl)
    await route.fulfill({ response: await route.fetch({ url }) })
  })
  await page.goto('http://plants.lan/')
  await ui.see(/^To sign in with 127.0.0.1:\d+, open this page at an address that begins with https.$/)

  expect([returned, await button.count()]).toEqual([`${provider.known.pageUrl}#/plants/1`, 0])
  expect(service.logs()).not.toMatch(/\bcode\b|verifier|eyJ[\w-]+\.eyJ/)
})

testLong('a page whose server cannot reach the provider says so, and takes tokens', async (begin) => {
  const jwt = { issuer: 'http://127.0.0.1:1', audience: AUDIENCE, client: CLIENT }
  const { page, ui, service } = await begin({ jwt, isClosed: true })
  await page.goto(urlOf(service))
  await ui.see('The server cannot reach 127.0.0.1:1: to sign in there, load this page again in a minute.')
  await ui.signIn(service.token)
  await ui.see('You have no plants yet.')
})
