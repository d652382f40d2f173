import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { blockAfter } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { endWithThisProcess, freePort } from '../../support/postgres-system.ts'
import { startProgram } from '../../support/program.ts'
import { openConnection } from '../../support/raw-connection.ts'
import type { Requirement } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'

const PROGRAM = Bun.which('haproxy') ?? Bun.which('haproxy', { PATH: '/usr/sbin' })

export const HAPROXY: Requirement = { missing: 'haproxy is missing', isMet: () => PROGRAM !== null }

/**
 * Starts HAProxy with the example in a file of the documentation, for servers at these ports, on a free port. Its defaults are those of
 * Debian, with a shorter `timeout connect`. An example with a map gets this one.
 */
export async function startHaproxy(
  example: string,
  ports: readonly number[],
  { checks = [], map = '' }: { readonly checks?: readonly number[]; readonly map?: string } = {},
) {
  if (PROGRAM === null) throw new Error('haproxy is missing')
  const folder = makeFolder()
  const port = freePort()
  const file = join(folder.path, 'haproxy.cfg')
  const mapFile = join(folder.path, 'map')
  writeFileSync(mapFile, map)
  let [server, check] = [0, 0]
  const section = (await blockAfter(`file: ${example}`))
    .replace(/^ +bind .*$/m, `  bind 127.0.0.1:${port}`)
    .replace(/\/etc\/\S+\.map/, mapFile)
    .replace(/10\.0\.0\.\d+:\d+/g, () => `127.0.0.1:${ports[server++]}`)
    .replace(/check port \d+/g, () => `check port ${checks[check++]}`)
  if (server !== ports.length || check !== checks.length) throw new Error(`${example} has other servers`)
  const isBackend = section.startsWith('backend')
  const frontend = `frontend front\n  bind 127.0.0.1:${port}\n${isBackend ? '  default_backend plantstore\n' : ''}`
  writeFileSync(
    file,
    `global
  maxconn 2000
defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
${section.startsWith('listen') ? '' : frontend}${section}`,
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
