import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'
import { endWithThisProcess, freePort } from './postgres.ts'

const PROGRAM = Bun.which('haproxy') ?? Bun.which('haproxy', { PATH: '/usr/sbin' })

/** Whether the tests behind HAProxy are skipped: where it is missing. With `CI=true` they fail instead. */
export const HAPROXY_IS_SKIPPED = process.env.CI !== 'true' && PROGRAM === null
/** For the names of those tests, to say that they are skipped. */
export const HAPROXY_NOTE = HAPROXY_IS_SKIPPED ? ' (skipped: haproxy is missing)' : ''

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
