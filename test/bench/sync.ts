/**
 * The yardstick for the latency of writes: appends 4 KiB to a file and syncs, in a loop. `measureSync` starts this file as a program:
 * `bun sync.ts FILE SECONDS`, which prints a `SyncLatency` as JSON.
 */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { SERVER_CORE } from '../support/process.ts'
import { percentile } from './statistics.ts'
import type { Workspace } from './workspace.ts'

/** The latency of a write with its sync. */
interface SyncLatency {
  readonly p50Ms: number
  readonly p99Ms: number
}

const BYTES = 4096
const WARM_UP_SYNCS = 100

if (import.meta.main) {
  const [path = '', seconds = '0'] = process.argv.slice(2)
  console.log(JSON.stringify(measure(path, Number(seconds))))
}

/** Measures a write of 4 KiB with its sync, on the server core and on the disk of the databases. */
export async function measureSync(workspace: Workspace, seconds: number): Promise<SyncLatency> {
  return JSON.parse(
    await workspace.run(SERVER_CORE, ['bun', import.meta.path, workspace.file('sync'), String(seconds)]),
  )
}

function measure(path: string, seconds: number): SyncLatency {
  const block = Buffer.alloc(BYTES, 1)
  const file = openSync(path, 'w')
  const writeAndSyncMs = () => {
    const startMs = performance.now()
    writeSync(file, block)
    fdatasyncSync(file)
    return performance.now() - startMs
  }
  const latenciesMs: number[] = []
  try {
    for (let count = 0; count < WARM_UP_SYNCS; count++) writeAndSyncMs()
    const endMs = performance.now() + seconds * 1000
    while (performance.now() < endMs) latenciesMs.push(writeAndSyncMs())
  } finally {
    closeSync(file)
    rmSync(path)
  }
  return { p50Ms: percentile(latenciesMs, 0.5), p99Ms: percentile(latenciesMs, 0.99) }
}
