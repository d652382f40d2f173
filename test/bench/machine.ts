import { readFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { join } from 'node:path'
import { version } from '../../package.json'
import type { Workspace } from './workspace.ts'
import { measureSync } from './yardsticks/measure-sync.ts'

const SYNC_SECONDS = 1

/** The machine of a measurement. Only ratios are comparable between machines. */
export interface Machine {
  readonly cores: number
  readonly processor: string
  readonly kernel: string
  readonly syncP50Ms: number
  readonly syncP99Ms: number
}

/** Describes the machine and measures its disk. */
export async function describeMachine(workspace: Workspace): Promise<Machine> {
  const { p50Ms, p99Ms } = await measureSync(workspace, SYNC_SECONDS)
  return {
    cores: cpus().length,
    processor: cpus()[0]?.model ?? 'unknown',
    kernel: release(),
    syncP50Ms: p50Ms,
    syncP99Ms: p99Ms,
  }
}

/** The versions of the contestants and the tools. */
export function describeVersions(): Readonly<Record<string, string>> {
  return {
    plantstore: version,
    bun: Bun.version,
    node: firstLine(['node', '--version']),
    wrk: firstLine(['wrk', '--version']),
    strace: firstLine(['strace', '--version']),
    postgres: firstLine(['psql', '--version']),
    ...Object.fromEntries(['elysia', 'hono', 'fastify', 'better-sqlite3', 'pg'].map((name) => [name, installed(name)])),
  }
}

const firstLine = (command: readonly string[]): string =>
  Bun.spawnSync([...command])
    .stdout.toString()
    .split('\n', 1)[0]
    ?.trim() ?? ''

function installed(name: string): string {
  const manifest: { readonly version: string } = JSON.parse(
    readFileSync(join(import.meta.dir, 'node_modules', name, 'package.json'), 'utf8'),
  )
  return manifest.version
}
