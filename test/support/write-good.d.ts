/** A checker of English prose, which has no types of its own. */
declare module 'write-good' {
  /** The problems that it finds in a text, but for those of checks that are false. */
  function writeGood(text: string, checks?: Readonly<Record<string, boolean>>): readonly { readonly reason: string }[]
  export = writeGood
}
