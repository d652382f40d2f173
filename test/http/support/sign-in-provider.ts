import { createServer } from 'node:http'
import { exportJWK } from 'jose'
import Provider from 'oidc-provider'
import type { Page } from 'playwright-core'
import { AUDIENCE, makeKey } from '../../support/issuer.ts'
import { freePort } from '../../support/postgres-system.ts'

/** A certified provider that knows one page as the client `page`, without a secret. Any name and password sign in. */
export async function startSignInProvider() {
  const port = freePort()
  const issuer = `http://127.0.0.1:${port}`
  const { privateKey, alg } = await makeKey('ES256')
  const resource = { scope: 'plants:write', audience: AUDIENCE, accessTokenFormat: 'jwt', jwt: { sign: { alg } } }
  const others = { token_endpoint_auth_method: 'none', id_token_signed_response_alg: alg }
  const state = { pageUrl: '' }
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'key 1', alg, use: 'sig' }] },
    clients: [{ client_id: 'page', redirect_uris: [issuer], ...others }],
    claims: { openid: ['sub'], profile: ['name'] },
    conformIdTokenClaims: false,
    clientBasedCORS: (_: object, origin: string) => state.pageUrl.startsWith(`${origin}/`),
    findAccount: (_: object, sub: string) => ({ accountId: sub, claims: () => ({ sub, name: `${sub} Lovelace` }) }),
    features: { resourceIndicators: { enabled: true, getResourceServerInfo: () => resource } },
  })
  // The page is at a port that is known later.
  const isPage = (uri: string) => uri === state.pageUrl
  Object.assign(provider.Client.prototype, { redirectUriAllowed: isPage, postLogoutRedirectUriAllowed: isPage })
  const server = createServer(provider.callback())
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    issuer,
    state,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** What a person does at the provider. */
export async function logIn(page: Page, user: string): Promise<void> {
  await page.fill('[name=login]', user)
  await page.fill('[name=password]', 'any')
  await page.click('button[type=submit]')
  await page.getByRole('heading', { name: 'Authorize' }).waitFor()
  await page.click('button[type=submit]')
}
