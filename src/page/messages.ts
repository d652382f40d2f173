// Tested in test/http/page/page-answers.test.ts.
import { INT64_MAX, INT64_MIN } from '../domain/int64.ts'
import { NO_JSON } from '../formats/plant-file.ts'
import type { Plant } from './rows.ts'

/** What to tell people about an error code: what was wrong, and what to do next. */
const SENTENCES: Readonly<Record<number, (detail: string) => string>> = {
  40001: () => NO_JSON,
  40002: quoted,
  40004: () => 'No plant can have this id.',
  40102: (hasWorked) =>
    hasWorked
      ? 'The server does not accept this token any more: it has ended, or was taken back. Sign in with another one.'
      : 'The server does not accept this token. Check that you have copied all of it, or ask the operator for a new one.',
  40301: () => 'This token may not do that. Sign in with one that may read your plants, or change them.',
  40302: () => 'You have as many plants as this server allows. Delete one, then add this one.',
  40402: () => 'You have no plant with this id.',
  40901: (stored) => `You have a plant with this id already${stored && `, ${stored}`}.`,
  41301: () => 'This plant is too long for the server. Make its texts shorter.',
  42901: () => 'The server takes no more requests from this token for a while.',
  50301: () => 'The server has no space left, so nothing was stored.',
  50302: () => 'The server cannot read or store anything at the moment.',
  50303: () => 'The server is too busy, or it is just restarting.',
  50200: () => 'The server cannot be reached.',
  50400: () => 'The server has been silent for 30 seconds.',
  41201: () => 'The server refused this, though nobody has changed the plant. A proxy may change its header ETag.',
  51100: () => 'Something between this browser and the server answered: sign in there, then try again.',
  [-1]: (method) => `${inDoubt(method)}.`,
  [-2]: (method) => `The server has not ${participleOf(method)} this: try again.`,
  // Of a token of the identity provider, which nobody sees.
  [-40102]: (hasWorked) =>
    hasWorked
      ? 'Your sign-in has ended. Sign in again.'
      : 'This server does not accept your sign-in: ask its operator whether you are blocked.',
  [-40301]: () => 'Your sign-in may not do that here: ask the operator for the scope plants:read or plants:write.',
}

/** Without its end. */
export const inDoubt = (method: string) => `It is not known whether this was ${participleOf(method)}`

const participleOf = (method: string) => (method === 'DELETE' ? 'deleted' : 'stored')

/**
 * What to tell about a refusal. `detail` is the message of the server, the stored plant if an id is taken, or a method. It is not
 * empty if a token has worked before. `grant` is there if the identity provider gave the token.
 */
export function describeRefusal(code: number, detail: string, grant?: object): string {
  const sentence = (grant && SENTENCES[-code]) ?? SENTENCES[code]
  if (sentence !== undefined) return sentence(detail)
  return because('The server refused this', quoted(detail) || `error ${code}.`)
}

/** One sentence of what is so and why. */
export const because = (what: string, why: string): string => `${what}: ${why.charAt(0).toLowerCase()}${why.slice(1)}`

/** A message of the server with quotes around names. */
export function quoted(message: string): string {
  return message.replace(/`(.*?)`/g, '“$1”')
}

/** Nobody would see a text of these. */
const INVISIBLE = /^[\s\u2800\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]*$/u

/** A text of a plant in a list or a sentence: cut after `max` characters, because one of 60 kB holds up the browser. */
export const shown = (text: string, max = 80): string =>
  INVISIBLE.test(text) ? '(invisible text)' : text.replace(RegExp(`^(.{${max}}).+`, 'su'), '$1…')

/** Like: “Monstera” (evergreen). */
export function describePlant({ id: _, name, ...others }: Plant): string {
  const details = Object.values(others)
    .filter(Boolean)
    .map((text) => shown(text))
    .join(', ')
  return `“${shown(name)}”${details && ` (${details})`}`
}

/** Like: 2 plants. */
export const countOf = (count: number): string => `${count.toLocaleString('en')} ${count === 1 ? 'plant' : 'plants'}`

/** What is wrong with what was typed for a field, if the page can tell. */
export function problemOf(field: string, text: string): string | undefined {
  if (field === 'name' && text.trim() === '') return 'Give the plant a name, with at least one letter.'
  if (field !== 'id') return undefined
  if (text === '') return 'Give the plant an id: any whole number that none of your plants has, like 4.'
  if (!/^(?:0|-?[1-9]\d*)$/.test(text)) return 'The id is a whole number, like 4: only digits, without spaces.'
  const isInRange = BigInt(text) >= INT64_MIN && BigInt(text) <= INT64_MAX
  return isInRange ? undefined : `The id is too far from 0: it is at most ${INT64_MAX}, and at least ${INT64_MIN}.`
}
