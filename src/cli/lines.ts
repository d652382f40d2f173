const LINE_FEED = 0x0a

/** What stands for a line that is longer than it may be. */
export const TOO_LONG = Symbol('a line that is too long')
export type LineBytes = Uint8Array | typeof TOO_LONG

/**
 * The lines of a stream, in the batches in which they come. What follows the last line feed is a line if it is not empty. Of
 * a line with more than `maxBytes` nothing is kept.
 */
export async function* readLines(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<readonly LineBytes[]> {
  /** The beginning of the line that is not over. */
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
