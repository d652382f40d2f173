/**
 * Measures how long `parseJson` takes for the worst bodies. Usage: `bun test/bench/json.ts`. The exit code
 * is 1 if the median of a large body is above its bound.
 */
import { parseJson } from '../../src/formats/plant-json.ts'
import { spreadOf } from './statistics.ts'

/** The default of `--max-body`, and a body that an operator may allow. */
const SIZES = [
  { bytes: 64 * 1024, boundMs: 5 },
  { bytes: 2 * 1024 * 1024, boundMs: 100 },
] as const
const ROUNDS = 15

/** Large texts by what they repeat. */
const LARGE: Readonly<Record<string, (bytes: number) => string>> = {
  'an id of zeros': (bytes) => repeat('{"id":1', () => '0', '}', bytes),
  zeros: (bytes) => repeat('{"x":[0', () => ',0', ']}', bytes),
  'one key': (bytes) => repeat('{"x":0', () => ',"x":0', '}', bytes),
  ids: (bytes) => repeat('{"id":1', () => ',"id":1.0', '}', bytes),
  'distinct keys': (bytes) => repeat('{"x":0', (index) => `,"${index.toString(36)}":0`, '}', bytes),
  'objects with distinct keys': (bytes) => repeat('{"x":[0', (index) => `,{"${index.toString(36)}":0}`, ']}', bytes),
  'open brackets': (bytes) => '['.repeat(bytes),
  'empty arrays': (bytes) => repeat('{"x":[0', () => ',[]', ']}', bytes),
  'empty objects': (bytes) => repeat('{"x":[0', () => ',{}', ']}', bytes),
  'empty strings': (bytes) => repeat('{"x":[0', () => ',""', ']}', bytes),
  text: (bytes) => repeat('{"id":1,"name":"', () => 'x', '"}', bytes),
  escapes: (bytes) => repeat('{"id":1,"name":"', () => '\\"', '"}', bytes),
  backslashes: (bytes) => `"${'\\'.repeat(bytes)}`,
}

for (const { bytes, boundMs } of SIZES) {
  for (const [name, textOf] of Object.entries(LARGE)) {
    const body = Buffer.from(textOf(bytes))
    const { median, min, max } = spreadOf(Array.from({ length: ROUNDS }, () => msToRead(body)))
    const isWithin = median <= boundMs
    if (!isWithin) process.exitCode = 1
    const verdict = isWithin ? '' : `: LONGER THAN ${boundMs} ms`
    const times = `${median.toFixed(1)} ms (${min.toFixed(1)} – ${max.toFixed(1)})`
    console.log(`${bytes / 1024} KiB of ${name}: ${times}${verdict}`)
  }
}

function msToRead(body: Uint8Array): number {
  const startMs = performance.now()
  try {
    parseJson(body)
  } catch {
    // Some of these texts are not JSON.
  }
  return performance.now() - startMs
}

/** A text of about this size. */
function repeat(start: string, part: (index: number) => string, end: string, bytes: number): string {
  const parts = [start]
  for (let length = start.length, index = 0; length < bytes; index++) {
    const next = part(index)
    parts.push(next)
    length += next.length
  }
  return [...parts, end].join('')
}
