// Tested in test/http/transcripts/lists.txt.
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

/** Whether a list names an entity tag. `*` names any, a malformed list none. Unless `isWeak`, a tag with `W/` does not count. */
export const matchesTag = (header: string, etag: string, isWeak: boolean): boolean =>
  header === '*' ||
  (ENTITY_TAGS.test(header) &&
    header.match(ENTITY_TAG)?.some((tag) => tag === etag || (isWeak && tag === `W/${etag}`)) === true)

/** An entity tag (RFC 9110 §8.8.3), and a list with at least one of them, which may also have empty elements (§5.6.1.2). */
const ENTITY_TAG = /(?:W\/)?"[!#-~\u0080-\u00ff]*"/g
const ELEMENT = `[ \\t]*(?:${ENTITY_TAG.source}[ \\t]*)?`
const ENTITY_TAGS = new RegExp(`^(?=.*")${ELEMENT}(?:,${ELEMENT})*$`)
