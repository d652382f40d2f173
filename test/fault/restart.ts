import { cpSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { SLACK_MS } from '../support/slack.ts'

/** The promise of a start, also after a kill. */
const START_LIMIT_MS = 1000

/** Flags of servers under load: with 64 connections the log of requests would be most of the work. */
export const QUIET = ['--access-log', 'off']

/**
 * The files that a server has left, once more: whoever looks at a database changes it, and the next start is to find it
 * as it was left. Nothing must have it open.
 */
export function copyDatabase(database: string) {
  const folder = makeFolder()
  cpSync(dirname(database), folder.path, { recursive: true })
  return { database: join(folder.path, basename(database)), [Symbol.dispose]: folder[Symbol.dispose] }
}

/** Starts a server on what another has left, with no step between. Throws unless it can read and write in time. */
export async function restart(database: string) {
  const begunMs = performance.now()
  const server = await serve(database, QUIET)
  const ready = await server.request('GET', '/readyz')
  const startMs = performance.now() - begunMs
  if (ready.status === 200 && startMs < START_LIMIT_MS + SLACK_MS) return { ...server, startMs }
  await server.kill()
  throw new Error(`the next start took ${Math.round(startMs)} ms, and was told ${ready.status} ${await ready.text()}`)
}
