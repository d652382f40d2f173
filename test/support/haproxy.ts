import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'
import { endWithThisProcess, freePort } from './postgres-system.ts'
import type { Requirement } from './requirement.ts'

const PROGRAM = Bun.which('haproxy') ?? Bun.which('haproxy', { PATH: '/usr/sbin' })

export const HAPROXY: Requirement = { missing: 'haproxy is missing', isMet: () => PROGRAM !== null }

const START_TIMEOUT_MS = 5000

/** Starts HAProxy with the parts of its configuration that say where it leads to, at a port of its own. */
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
  const child = Bun.spawn([PROGRAM, '-db', '-f', file], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  endWithThisProcess(['kill', '-KILL', String(child.pid)], folder.path)
  const stop = async () => {
    child.kill('SIGKILL')
    await child.exited
    folder[Symbol.dispose]()
  }
  const said = child.stderr.text()
  const deadlineMs = performance.now() + START_TIMEOUT_MS
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() > deadlineMs) {
      await stop()
      throw new Error(`haproxy did not start: ${await said}`)
    }
    await Bun.sleep(10)
  }
  return { port, [Symbol.asyncDispose]: stop }
}

async function accepts(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
    socket.terminate()
    return true
  } catch {
    return false
  }
}
