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
