// Tested in test/cli/transcripts/log.txt.
/**
 * Characters that end a line, control a terminal, or reorder text: control characters, the separators of Unicode, and its
 * bidirectional controls (https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters).
 */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu
const CONTROLS_IN_LINES = /[[\p{Cc}\p{Bidi_Control}\u2028\u2029]--\n]/gv

/** The text with these characters as JSON escapes, like `\u001b`. The value of a JSON text without line feeds stays the same. */
export const escapeControls = (text: string): string => text.replace(CONTROLS, escapeCharacter)

/** The same for a text of several lines: line feeds stay. */
export const escapeControlsInLines = (text: string): string => text.replace(CONTROLS_IN_LINES, escapeCharacter)

const escapeCharacter = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
