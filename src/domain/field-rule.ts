// Tested in test/http/transcripts/bodies.txt.
import { INT64_RULE } from './int64.ts'

/** A sentence that says what a field of a plant must be. The page at `/` says it of the lines of a file, too. */
export const fieldRule = (field: string, isOptional: boolean): string =>
  `\`${field}\` ${isOptional ? 'must be left out or be' : 'is required and must be'} ${field === 'id' ? INT64_RULE : 'a string without U+0000 and without unpaired surrogates'}.`
