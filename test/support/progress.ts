const PROGRESS =
  /^(?:\d+ %: )?\d+ (?:of \d+ )?(?:plants?|tokens)(?: of .+)? (?:checked|copied|created|deleted|exported|imported|verified)\n/gm

/** What a command has told, without the lines of progress that a slow machine prints, too. */
export const withoutProgress = (told: string): string => told.replace(PROGRESS, '')
