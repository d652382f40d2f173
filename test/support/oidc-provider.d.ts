/** A certified OpenID Connect provider, which has no types of its own. */
declare module 'oidc-provider' {
  class Provider {
    constructor(issuer: string, configuration: object)
    /** Answers the requests of a server of Node.js. */
    callback(): import('node:http').RequestListener
    readonly Client: { readonly prototype: object }
  }
  export = Provider
}
