// Tested in test/cli/transcripts/streams.txt.
import { isUtf8 } from 'node:buffer'
import { open } from 'node:fs/promises'
import { AppError, misused, readFailure } from '../error.ts'
import type { Io } from './io.ts'

/** The bytes of a file or of stdin. `bytes` is their number if it is known. */
export interface Input {
  /** As messages call it: the path, or `stdin`. */
  readonly name: string
  readonly stream: AsyncIterable<Uint8Array>
  readonly bytes: number | undefined
}

/** Opens a file, or stdin without a file or for `-`. Rejects with `file_unusable`. */
export async function openInput(file: string | undefined, io: Io): Promise<Input> {
  if (file === undefined || file === '-') {
    if (io.readsTerminal) await io.report('Reading from the terminal: Ctrl-D ends the input.')
    return { name: 'stdin', stream: io.stdin(), bytes: undefined }
  }
  const refuse = (cause: unknown) => {
    const message = `Cannot read ${file}: ${readFailure(cause)}. Name another file, or - for stdin.`
    throw new AppError('file_unusable', { message, cause })
  }
  const handle = await open(file).catch(refuse)
  const found = await handle.stat()
  if (found.isDirectory()) refuse('EISDIR')
  return { name: file, stream: handle.createReadStream(), bytes: found.isFile() ? found.size : undefined }
}

/** The text of an input. Rejects with `misused` if it is longer or not UTF-8. */
export async function readText({ name, stream }: Pick<Input, 'name' | 'stream'>, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) throw misused(`The text of ${name} has more than ${maxBytes} bytes.`)
  }
  const text = Buffer.concat(chunks)
  if (!isUtf8(text)) throw misused(`The text of ${name} is not UTF-8.`)
  return text.toString()
}
