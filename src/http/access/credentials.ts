import { AppError } from '../../domain/error.ts'

/** The scheme in any letter case, then spaces, then a `b64token` (RFC 6750 §2.1). */
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * One line of credentials (RFC 9110 §11.4): a scheme, then a `token68` or parameters with commas between. Several lines arrive
 * joined by a comma and a space. They do not match, because within credentials no scheme follows a comma. If a second line
 * has parameters alone, it reads as part of the first; it would be no credentials by itself.
 */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = `${TOKEN}[ \\t]*=[ \\t]*(?:${TOKEN}|"(?:[^"\\\\]|\\\\.)*")`
const PARAMETERS = `${PARAMETER}(?:[ \\t]*,[ \\t]*${PARAMETER})*`
const CREDENTIALS = new RegExp(`^(${TOKEN})(?: +(?:[A-Za-z0-9\\-._~+/]+=*|${PARAMETERS}))?$`)

/** The token in an `Authorization` line. Rejects with `token_missing` or `token_invalid`. */
export function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined) throw new AppError('token_missing')
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined) throw new AppError(isOtherScheme(authorization) ? 'token_missing' : 'token_invalid')
  return token
}

/** Whether the line holds no bearer token, but well-formed credentials of another scheme (RFC 6750 §3.1). */
function isOtherScheme(authorization: string): boolean {
  const scheme = CREDENTIALS.exec(authorization)?.[1]
  return scheme !== undefined && scheme.toLowerCase() !== 'bearer'
}
