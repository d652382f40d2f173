import { expect } from 'bun:test'
import { providerUserName } from '../../../src/domain/token.ts'
import type { SignInClient } from '../../../src/http/jwt/sign-in.ts'
import { AUDIENCE } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'
import { pageTests, uiOf, urlOf } from '../support/page.ts'
import { signInOf } from '../support/pages.ts'
import type { Service } from '../support/service.ts'
import { logIn, startSignInProvider } from '../support/sign-in-provider.ts'

const { testPage } = pageTests()
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
