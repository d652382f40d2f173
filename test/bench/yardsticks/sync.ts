/**
 * The yardstick for the latency of writes: appends 4 KiB to a file and syncs, in a loop. Usage: `bun sync.ts FILE SECONDS`. Prints a
 * `SyncLatency` as JSON.
 */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { percentile } from '../statistics.ts'

/** The latency of a write with its sync. */
export interface SyncLatency {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly syncs: number
}

const BYTES = 4096
const WARM_UP_SYNCS = 100

const [path = '', seconds = '0'] = process.argv.slice(2)
const block = Buffer.alloc(BYTES, 1)
const file = openSync(path, 'w')
const latenciesMs: number[] = []
try {
  for (let count = 0; count < WARM_UP_SYNCS; count++) writeAndSyncMs()
  const endMs = performance.now() + Number(seconds) * 1000
  while (performance.now() < endMs) latenciesMs.push(writeAndSyncMs())
} finally {
  closeSync(file)
  rmSync(path)
}
const latency: SyncLatency = {
  p50Ms: percentile(latenciesMs, 0.5),
  p99Ms: percentile(latenciesMs, 0.99),
  syncs: latenciesMs.length,
}
console.log(JSON.stringify(latency))

function writeAndSyncMs(): number {
  const startMs = performance.now()
  writeSync(file, block)
  fdatasyncSync(file)
  return performance.now() - startMs
}
