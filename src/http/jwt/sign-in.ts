// Tested in test/http/pages.test.ts.
import { isSafeAddress } from '../../address.ts'
import type { SignIn } from '../options.ts'
import type { Metadata } from './keys.ts'

/** How the page is known to the provider, and what it also asks of it. */
export type SignInClient = Pick<SignIn, 'clientId' | 'parameters'>

/** What the page needs of the metadata (RFC 8414 §2, RFC 9207 §3, RP-Initiated Logout 1.0 §2.1). */
const NAMES = [
  ...['issuer', 'authorization_endpoint', 'token_endpoint', 'end_session_endpoint'],
  ...['authorization_response_iss_parameter_supported', 'id_token_signing_alg_values_supported'],
]

/** What the page needs to sign in with a provider. An endpoint for which others could answer counts as missing. */
export function signInWith({ clientId, parameters }: SignInClient, metadata: Metadata): SignIn {
  const isUsable = (name: string) => !name.endsWith('_endpoint') || isSafeAddress(String(metadata[name]))
  const server = NAMES.filter((name) => name in metadata && isUsable(name)).map((name) => [name, metadata[name]])
  const defaults: Record<string, string> = { scope: 'openid profile plants:write' }
  // No server and no log of a proxy gets a code in a fragment.
  if ([metadata.response_modes_supported].flat().includes('fragment')) defaults.response_mode = 'fragment'
  for (const [name] of parameters) delete defaults[name]
  return { clientId, parameters: [...Object.entries(defaults), ...parameters], server: Object.fromEntries(server) }
}
