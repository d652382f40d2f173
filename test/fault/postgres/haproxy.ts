import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../support/folder.ts'
import { endWithThisProcess, freePort } from '../../support/postgres-system.ts'
import { startProgram } from '../../support/program.ts'
import { openConnection } from '../../support/raw-connection.ts'
import type { Requirement } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'

const PROGRAM = Bun.which('haproxy') ?? Bun.which('haproxy', { PATH: '/usr/sbin' })

export const HAPROXY: Requirement = { missing: 'haproxy is missing', isMet: () => PROGRAM !== null }

/** Starts HAProxy on a free port. The lines of the backend name the servers. */
export async function startHaproxy(mode: 'http' | 'tcp', backend: readonly string[]) {
  if (PROGRAM === null) throw new Error('haproxy is missing')
  const folder = makeFolder()
  const port = freePort()
  const file = join(folder.path, 'haproxy.cfg')
  writeFileSync(
    file,
    `global
  maxconn 2000
defaults
  mode ${mode}
  timeout connect 1s
  timeout check 2s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:${port}
  default_backend back
backend back
  balance roundrobin
${backend.map((line) => `  ${line}`).join('\n')}
`,
  )
  const { child } = startProgram([PROGRAM, '-db', '-f', file])
  endWithThisProcess(['kill', '-KILL', String(child.pid)], folder.path)
  await until('HAProxy accepts connections', () => accepts(port))
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      folder[Symbol.dispose]()
    },
  }
}

const accepts = (port: number) =>
  openConnection(port).then(
    ({ cut }) => cut() === undefined,
    () => false,
  )
