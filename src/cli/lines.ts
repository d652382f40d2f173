const LINE_FEED = 0x0a

/** Stands for a line that is longer than `maxBytes`. */
export const TOO_LONG = Symbol('a line that is too long')
export type LineBytes = Uint8Array | typeof TOO_LONG

/**
 * The lines of a stream, one batch for each chunk. Bytes after the last line feed are a line, too. A line that is longer than
 * `maxBytes` is not kept in memory.
 */
export async function* readLines(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<readonly LineBytes[]> {
  /** The beginning of the current line. */
  let parts: Uint8Array[] = []
  let bytes = 0
  const take = (part: Uint8Array) => {
    bytes += part.length
    if (bytes > maxBytes) parts = []
    else parts.push(part)
  }
  const end = (): LineBytes => {
    const line = bytes > maxBytes ? TOO_LONG : Buffer.concat(parts)
    parts = []
    bytes = 0
    return line
  }
  for await (const chunk of stream) {
    const lines: LineBytes[] = []
    let start = 0
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, start)) {
      const line = chunk.subarray(start, at)
      start = at + 1
      if (bytes === 0 && line.length <= maxBytes) {
        lines.push(line)
        continue
      }
      take(line)
      lines.push(end())
    }
    if (start < chunk.length) take(chunk.slice(start))
    if (lines.length > 0) yield lines
  }
  if (bytes > 0) yield [end()]
}
