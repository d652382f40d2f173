import { misused } from '../error.ts'

const BLANKS = String.raw`[ \t\r\n]+`
/** Before version 254 of systemd a comment with a \ at its end went on in the next line, so such a comment is refused. */
const COMMENT = String.raw`[#;][^\r\n]*(?<!\\)(?![^\r\n])`
/** Quotes count only at the beginning of a value. */
const QUOTED = String.raw`'[^']*'|"(?:\\.|[^"\\])*"`
const PLAIN = String.raw`(?!['" \t])(?:\\(?:.|$)|[^\\\r\n])*?`
const ASSIGNMENT = String.raw`(?<name>[A-Za-z_]\w*)[ \t]*=(?<quoted>(?:[ \t]|${QUOTED})*)(?<plain>${PLAIN})[ \t]*(?![^\r\n])`
const PARTS = new RegExp([BLANKS, COMMENT, ASSIGNMENT].join('|'), 'gsy')
/** systemd takes no file with a NUL, or with a value that is not UTF-8. */
const NO_VALUE = /[\0\ufffd]/

/**
 * The variables of a file for `EnvironmentFile=`, as systemd reads them (systemd.exec(5)), and the number of the line of each.
 * Throws `misused` at the first line that is no assignment, no comment and not blank.
 */
export function parseEnvironmentFile(text: string, path: string) {
  const variables: Record<string, string> = {}
  const lines: Record<string, number> = {}
  const lineAt = (index: number) => text.slice(0, index).split('\n').length
  let end = 0
  for (const { 0: part, index, groups = {} } of text.matchAll(PARTS)) {
    const { name, quoted = '', plain = '' } = groups
    const texts = Array.from(quoted.matchAll(new RegExp(QUOTED, 'gs')), ([text]) => unquote(text))
    const value = texts.join('') + plain.replace(/\\(?:[\r\n]|$|(.))/gs, '$1')
    if (NO_VALUE.test(value)) break
    if (name !== undefined) [variables[name], lines[name]] = [value, lineAt(index)]
    end = index + part.length
  }
  if (end === text.length) return { variables, lines }
  throw misused(
    `Line ${lineAt(end)} of ${path} must be NAME=value with closed quotes and in UTF-8, or a comment without \\ at its end.`,
  )
}

function unquote(text: string): string {
  const inside = text.slice(1, -1)
  return text.startsWith("'") ? inside : inside.replace(/\\(?:\n|(["\\`$]))/g, '$1')
}
