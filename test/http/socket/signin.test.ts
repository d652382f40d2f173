import { expect } from 'bun:test'
import { providerUserName } from '../../../src/domain/token.ts'
import { AUDIENCE } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'
import { pageTests, uiOf, urlOf } from '../support/page.ts'
import { signInOf } from '../support/pages.ts'
import type { Service } from '../support/service.ts'
import { logIn, startSignInProvider } from '../support/sign-in-provider.ts'

const { testPage } = pageTests()

const client = { clientId: 'page', parameters: [] }

/** Waits until the page of a service knows the endpoints of its provider. */
const providerKnown = (service: Service) =>
  until('the provider is known', async (see) => {
    const { text } = await service.request('GET', '/', { token: null, headers: { accept: 'text/html' } })
    return see(signInOf(text)).server.token_endpoint
  })

testPage(
  'people sign in with an identity provider, return to the address they had, and sign out of it',
  async (begin) => {
    await using provider = await startSignInProvider()
    const { issuer, host, state } = provider
    const jwt = { issuer, audience: AUDIENCE, client }
    const { page, ui, requests, violations, service } = await begin({ jwt, screen: {}, isClosed: true })
    const pageUrl = urlOf(service)
    state.pageUrl = pageUrl
    await providerKnown(service)
    const user = providerUserName(issuer, 'ada')

    await page.goto(`${pageUrl}#/?filter=er`)
    const signIn = ui.button(`Sign in with ${host}`)
    await signIn.waitFor()
    const others = requests.filter((each) => !each.includes(` ${pageUrl}`))
    await signIn.click()
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
    await beside.click(`Sign in with ${host}`)
    await beside.button('New plant').waitFor()
    await ui.click('Sign out')
    await page.getByRole('button', { name: 'Yes, sign me out' }).click()
    await signIn.waitFor()
    await beside.see('You have signed out in another tab.')
    const kept = [await ui.stored(), await beside.stored()]
    await signIn.click()
    await page.locator('[name=password]').waitFor()

    expect([others, returned, violated]).toEqual([[], `${pageUrl}#/?filter=er`, []])
    expect(kept).toEqual([
      ['{}', '{}'],
      ['{}', '{}'],
    ])
    expect(await service.store.findUser(user)).toBeDefined()
    expect(service.logs()).not.toMatch(/code=|eyJ/)
  },
)
