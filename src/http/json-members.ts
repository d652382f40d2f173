import { AppError } from '../domain/error.ts'

/** Levels of arrays and objects in a JSON text, the outermost included. */
export const JSON_DEPTH_MAX = 64

/**
 * The values of some members of the object that a JSON text is (RFC 8259), each as it is written; of several with one
 * name the last. `undefined` where the text is JSON and no object. Rejects with `body_not_json` what is none, or is nested
 * deeper than `JSON_DEPTH_MAX`.
 *
 * `JSON.parse` makes a value of everything that nobody asked for, and tells a number's digits only to a function that is
 * called for each of them: two megabytes of `[],[],` or of keys take it a third of a second, this some milliseconds.
 */
export function readMembers<Name extends string>(
  text: string,
  names: readonly Name[],
): Partial<Record<Name, string>> | undefined {
  const start = afterSpace(text, 0)
  const isObject = text.charCodeAt(start) === OPEN_BRACE
  // Where the last value of each name is: only that one is made a text of.
  const values: (readonly [start: number, end: number])[] = []
  const end = isObject
    ? afterObject(text, start, 1, (at, nameEnd, value, valueEnd) => {
        const index = nameAt(text, at, nameEnd, names)
        if (index !== -1) values[index] = [value, valueEnd]
      })
    : afterValue(text, start, 0)
  if (afterSpace(text, end) !== text.length) throw notJson()
  if (!isObject) return undefined
  const sources: Partial<Record<Name, string>> = {}
  for (const [index, name] of names.entries()) {
    const value = values[index]
    if (value !== undefined) sources[name] = text.slice(...value)
  }
  return sources
}

/** Told where the name and the value of a member begin, and where they have ended. */
type OnMember = (name: number, nameEnd: number, value: number, valueEnd: number) => void

/** Which of the names the string between these means, or -1. Nothing is made of any that is too long. */
function nameAt(text: string, start: number, end: number, names: readonly string[]): number {
  const length = end - start - 2
  let isShort = false
  for (let index = 0; index < names.length; index++) {
    const name = names[index] ?? ''
    if (name.length === length && text.startsWith(name, start + 1)) return index
    if (length <= ESCAPE_LENGTH_MAX * name.length) isShort = true
  }
  if (!isShort) return -1
  for (let at = start; at < end; at++) {
    if (text.charCodeAt(at) === BACKSLASH) return names.indexOf(JSON.parse(text.slice(start, end)))
  }
  return -1
}

// Each of these takes the index at which something begins, and returns the one behind its end.

function afterValue(text: string, start: number, depth: number): number {
  switch (text.charCodeAt(start)) {
    case QUOTE:
      return afterString(text, start)
    case OPEN_BRACE:
      return afterObject(text, start, depth + 1)
    case OPEN_BRACKET:
      return afterArray(text, start, depth + 1)
    case LETTER_T:
      return afterWord(text, start, 'true')
    case LETTER_F:
      return afterWord(text, start, 'false')
    case LETTER_N:
      return afterWord(text, start, 'null')
    default:
      return afterNumber(text, start)
  }
}

function afterObject(text: string, start: number, depth: number, onMember?: OnMember): number {
  if (depth > JSON_DEPTH_MAX) throw notJson()
  let at = afterSpace(text, start + 1)
  if (text.charCodeAt(at) === CLOSE_BRACE) return at + 1
  for (;;) {
    const nameEnd = afterString(text, at)
    const colon = afterSpace(text, nameEnd)
    if (text.charCodeAt(colon) !== COLON) throw notJson()
    const value = afterSpace(text, colon + 1)
    const valueEnd = afterValue(text, value, depth)
    onMember?.(at, nameEnd, value, valueEnd)
    at = afterSpace(text, valueEnd)
    const char = text.charCodeAt(at)
    if (char === CLOSE_BRACE) return at + 1
    if (char !== COMMA) throw notJson()
    at = afterSpace(text, at + 1)
  }
}

function afterArray(text: string, start: number, depth: number): number {
  if (depth > JSON_DEPTH_MAX) throw notJson()
  let at = afterSpace(text, start + 1)
  if (text.charCodeAt(at) === CLOSE_BRACKET) return at + 1
  for (;;) {
    at = afterSpace(text, afterValue(text, at, depth))
    const char = text.charCodeAt(at)
    if (char === CLOSE_BRACKET) return at + 1
    if (char !== COMMA) throw notJson()
    at = afterSpace(text, at + 1)
  }
}

function afterString(text: string, start: number): number {
  if (text.charCodeAt(start) !== QUOTE) throw notJson()
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) return at + 1
    if (char < SPACE) throw notJson()
    if (char === BACKSLASH) at = lastOfEscape(text, at)
  }
  throw notJson()
}

/** The index of the last character of an escape. */
function lastOfEscape(text: string, backslash: number): number {
  const letter = backslash + 1
  if (text.charCodeAt(letter) !== LETTER_U) {
    if (!isEscape(text.charCodeAt(letter))) throw notJson()
    return letter
  }
  const last = letter + 4
  for (let at = letter + 1; at <= last; at++) if (!isHexDigit(text.charCodeAt(at))) throw notJson()
  return last
}

function afterWord(text: string, start: number, word: string): number {
  if (!text.startsWith(word, start)) throw notJson()
  return start + word.length
}

function afterNumber(text: string, start: number): number {
  const whole = text.charCodeAt(start) === MINUS ? start + 1 : start
  let at = text.charCodeAt(whole) === ZERO ? whole + 1 : afterDigits(text, whole)
  if (text.charCodeAt(at) === POINT) at = afterDigits(text, at + 1)
  const char = text.charCodeAt(at)
  if (char !== LETTER_E && char !== CAPITAL_E) return at
  const sign = text.charCodeAt(at + 1)
  return afterDigits(text, sign === PLUS || sign === MINUS ? at + 2 : at + 1)
}

function afterDigits(text: string, start: number): number {
  let at = start
  while (isDigit(text.charCodeAt(at))) at++
  if (at === start) throw notJson()
  return at
}

function afterSpace(text: string, start: number): number {
  for (let at = start; ; at++) {
    const char = text.charCodeAt(at)
    if (char !== SPACE && char !== LINE_FEED && char !== CARRIAGE_RETURN && char !== TAB) return at
  }
}

const notJson = () => new AppError('body_not_json')

/** Whether it may follow a backslash, as `u` may. */
function isEscape(char: number): boolean {
  switch (char) {
    case QUOTE:
    case BACKSLASH:
    case SLASH:
    case LETTER_B:
    case LETTER_F:
    case LETTER_N:
    case LETTER_R:
    case LETTER_T:
      return true
    default:
      return false
  }
}

const isDigit = (char: number): boolean => char >= ZERO && char <= NINE
const isHexDigit = (char: number): boolean =>
  isDigit(char) || (char >= CAPITAL_A && char <= CAPITAL_F) || (char >= LETTER_A && char <= LETTER_F)

const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const SLASH = 0x2f
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const CAPITAL_A = 0x41
const CAPITAL_E = 0x45
const CAPITAL_F = 0x46
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const LETTER_A = 0x61
const LETTER_B = 0x62
const LETTER_E = 0x65
const LETTER_F = 0x66
const LETTER_N = 0x6e
const LETTER_R = 0x72
const LETTER_T = 0x74
const LETTER_U = 0x75
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
/** Characters of `\u0041`. */
const ESCAPE_LENGTH_MAX = 6
