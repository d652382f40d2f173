/** What the policy of every page says. */
export const BASE_POLICY = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'frame-ancestors': ["'none'"],
}

/** The directives of a page's policy. */
export function policyOf(headers: Headers): Readonly<Record<string, readonly string[]>> {
  const directives = headers.get('content-security-policy')?.split('; ') ?? []
  return Object.fromEntries(
    directives.map((directive) => {
      const [name = '', ...sources] = directive.split(' ')
      return [name, sources]
    }),
  )
}

/** The addresses in a page, in their order. */
export const addressesIn = (html: string): readonly string[] =>
  [...html.matchAll(/\b(?:src|href|action)\s*=\s*["']?([^"'\s>]*)/g)].map(([, address = '']) => address)

/** The names of a page's assets, without their hashes. Another address stays as it is. */
export const assetsIn = (html: string): readonly string[] =>
  addressesIn(html).map((address) => address.replace(/^assets\/(\w+)-[0-9a-z]{10,13}\.(\w+)$/, '$1.$2'))

/** How people sign in with an identity provider, as a page has it. */
export function signInOf(html: string) {
  const [, text = ''] = /<meta name="provider" content="([^"]*)">/.exec(html) ?? []
  const characters: Readonly<Record<string, string>> = { quot: '"', lt: '<', gt: '>', amp: '&' }
  return JSON.parse(text.replace(/&(\w+);/g, (_, name) => `${characters[name]}`) || 'null')
}
