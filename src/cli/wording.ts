import type { Token } from '../domain/token.ts'

/** A number and its noun: `1 token`, `3 tokens`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** A token in a sentence: `token 2 of user me (write, "dashboard")`. */
export function describeToken({
  id,
  userName,
  scope,
  label,
  expiresAtMs,
}: Pick<Token, 'id' | 'userName' | 'scope' | 'label' | 'expiresAtMs'>): string {
  const details: string[] = [scope]
  if (label !== undefined) details.push(JSON.stringify(label))
  if (expiresAtMs !== undefined) details.push(`expires ${new Date(expiresAtMs).toISOString()}`)
  return `token ${id} of user ${userName} (${details.join(', ')})`
}
