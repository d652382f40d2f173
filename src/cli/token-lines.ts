import { isUtf8 } from 'node:buffer'
import { misused } from '../domain/error.ts'
import type { Io } from './io.ts'

/**
 * The lines of a text, without empty lines and comments, each with the words that the groups of a pattern match. `place` begins a
 * message that refuses the line. Throws `misused` if a line does not match; `form` says in the message how lines look.
 */
export function* readTokenLines(text: string, source: string, pattern: RegExp, form: string) {
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue
    const place = `Line ${index + 1} of ${source}`
    const words = pattern.exec(line.trim())?.slice(1)
    if (words === undefined) throw misused(`${place} must be: ${form}.`)
    yield { number: index + 1, words, place }
  }
}

/** The text on stdin. Throws `misused` if it is longer or not UTF-8. */
export async function readText({ stdin }: Pick<Io, 'stdin'>, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stdin()) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) throw misused(`The text on stdin has more than ${maxBytes} bytes.`)
  }
  const text = Buffer.concat(chunks)
  if (!isUtf8(text)) throw misused('The text on stdin is not UTF-8.')
  return text.toString()
}
