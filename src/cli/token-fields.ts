import type { Token } from '../domain/token.ts'
import { toIso } from './output.ts'

/** What is known of a token at its creation. */
export type NewToken = Pick<Token, 'id' | 'userName' | 'scope' | 'label' | 'createdAtMs' | 'expiresAtMs'>

/** These facts as `--json` prints them. */
export const fieldsOf = ({ id, userName, scope, label, createdAtMs, expiresAtMs }: NewToken) => ({
  id,
  user: userName,
  scope,
  label: label ?? null,
  created: toIso(createdAtMs),
  expires: toIso(expiresAtMs),
})

/** A token in a sentence: `token 2 of user me (write, "dashboard")`. */
export function describe(token: NewToken): string {
  const { id, user, scope, label, expires } = fieldsOf(token)
  const details = [scope, label && JSON.stringify(label), expires && `expires ${expires}`].filter(Boolean)
  return `token ${id} of user ${user} (${details.join(', ')})`
}
