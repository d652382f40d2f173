// Tested in test/http/transcripts/lists.txt.
/** Computes SHA-256 of texts: a class of Bun, or JavaScript in the page at `/`. */
interface Sha256 {
  hash(text: string, encoding: 'base64url'): string
}

/**
 * The strong entity tag of an answer with this text (RFC 9110 §8.8.3). The page at `/` saves a request if it computes the tags of
 * its plants as the server does. No client may rely on their form.
 */
export const entityTagOf = (text: string, sha256: Sha256): string => `"${sha256.hash(text, 'base64url')}"`

/** The preconditions of a write (RFC 9110 §13.1), if it has any. A malformed header never holds. */
export function conditionOf<Stored>({ headers }: Request, tagOf: (stored: Stored) => string) {
  const ifMatch = headers.get('if-match')
  const ifNoneMatch = headers.get('if-none-match')
  if (ifMatch === null && ifNoneMatch === null) return undefined
  if (ifMatch === '*' && ifNoneMatch === null) return 'some'
  if (ifMatch === null && ifNoneMatch === '*') return 'none'
  return (stored: Stored | undefined): boolean => {
    const etag = stored && tagOf(stored)
    if (ifMatch !== null && !(etag && matchesTag(ifMatch, etag, false))) return false
    return ifNoneMatch === null || (ENTITY_TAGS.test(ifNoneMatch) && !(etag && matchesTag(ifNoneMatch, etag, true)))
  }
}

/**
 * Whether a list names an entity tag. `*` names any, and a malformed list none. `If-Match` compares strongly: there a tag with
 * `W/` does not count.
 */
export const matchesTag = (header: string, etag: string, isWeak: boolean): boolean =>
  header === '*' ||
  (ENTITY_TAGS.test(header) &&
    header.match(ENTITY_TAG)?.some((tag) => tag === etag || (isWeak && tag === `W/${etag}`)) === true)

/** An entity tag (RFC 9110 §8.8.3), and a list of them, which may have empty elements (§5.6.1.2). */
const ENTITY_TAG = /(?:W\/)?"[!#-~\u0080-\u00ff]*"/g
const ELEMENT = `[ \\t]*(?:${ENTITY_TAG.source}[ \\t]*)?`
const ENTITY_TAGS = new RegExp(`^${ELEMENT}(?:,${ELEMENT})*$`)
