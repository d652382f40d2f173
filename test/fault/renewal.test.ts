import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, renameSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect } from 'node:tls'
import { serveDatabase } from '../cli/support/database.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { FAKETIME, makeClock } from '../support/clock.ts'
import { blockAfter, readContrib } from '../support/docs.ts'
import { makeFolder } from '../support/folder.ts'
import { scrape, scrapeUntil } from '../support/metrics.ts'
import { PROCESS_TOOLS, SERVER_CORE, workersOf } from '../support/process.ts'
import { runProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { injectFault, STRACE } from '../support/strace.ts'
import { until } from '../support/until.ts'
import { rounds } from './rounds.ts'

const RENEWED = 'new connections get the certificate that is in its file now'
/** So many connections are accepted by all of three threads, but once in 15 million times. */
const CONNECTIONS = 40
/** New connections at a time, while certificates are renewed. */
const CLIENTS = 8
const THREE = ['--threads', '3']
/** So many SIGHUPs without a pause. */
const SIGNALS = 20
const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** A server, and the files of its certificate. */
async function serveTls(
  more: readonly string[] = THREE,
  { days = 30, env }: { days?: number; env?: ReturnType<typeof makeClock>['env'] } = {},
) {
  const folder = makeFolder()
  const renew = (days: number) => makeCertificate(folder.path, 'own', { days })
  const { certPath, keyPath } = await renew(days)
  const flags = ['--tls-cert', certPath, '--tls-key', keyPath, '--metrics-listen', '127.0.0.1:0']
  const all = [...flags, ...more, '--log-format', 'json', '--access-log', 'off']
  const service = await serveDatabase(all, { ...(env && { env }) })
  const { server } = service
  const count = () => server.stdout().split(RENEWED).length - 1
  return {
    ...service,
    renew,
    /** Sends SIGHUP, and waits for the line that says what came of it. */
    async hangUp(): Promise<void> {
      const before = count()
      server.signal('SIGHUP')
      await until(RENEWED, (see) => see(count()) > before)
    },
    /** Sends SIGTERM and then SIGHUP, and waits for the line that says what came of the latter. */
    async hangUpWhileItEnds(): Promise<void> {
      server.signal('SIGTERM')
      await until('the server ends', (see) => see(server.stdout()).includes('"msg":"ending"'))
      server.signal('SIGHUP')
      await until('it says so', (see) => see(server.stdout()).includes('the certificate stays as it is'))
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

/** The days until the end of the certificate that a new connection gets. */
async function daysShown(port: number): Promise<number> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { valid_to } = socket.getPeerCertificate()
  socket.destroy()
  return Math.round((Date.parse(valid_to) - Date.now()) / DAY_MS)
}

const daysOnAll = async (port: number) =>
  new Set(await Promise.all(Array.from({ length: CONNECTIONS }, () => daysShown(port))))

describe.skipIf(lacks(OPENSSL))('SIGHUP of a server with TLS', () => {
  test.each([
    ['three threads', THREE],
    ['one, which --rate-limit needs', ['--rate-limit', '1000/s']],
  ])('brings a new certificate to %s, while a request under way is answered', async (_, flags) => {
    await using service = await serveTls(flags)
    const { server, token } = service
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': '22' }
    const to = { port: server.port, host: '127.0.0.1', rejectUnauthorized: false, agent: false as const }
    const held = request({ ...to, method: 'POST', path: '/plants', headers })
    held.write('{"id":1,"na')
    await once(held, 'socket').then(([socket]) => socket.authorized || once(socket, 'secureConnect'))

    await service.renew(60)
    await service.hangUp()

    expect(await daysOnAll(server.port)).toEqual(new Set([60]))
    const { plantstore_certificate_expires_in_seconds: leftS } = await scrape(server)
    expect(Math.round((Number(leftS) * 1000) / DAY_MS)).toBe(60)
    held.end('me":"Fern"}')
    const [answer] = await once(held, 'response')
    expect(answer.statusCode).toBe(200)
    expect(await server.end()).toBe(0)
  })

  test.skipIf(lacks(STRACE))('changes nothing in any thread if one of them cannot listen', async () => {
    await using service = await serveTls()
    const { server } = service
    await service.renew(60)
    const last = workersOf(server.pid).at(-1) ?? 0
    await using _fault = await injectFault(last, ['bind'], 'error=EADDRINUSE', { inThread: true })

    server.signal('SIGHUP')
    await until('it says so', (see) => see(server.stdout()).includes('the certificate stays as it is'))

    expect(await daysOnAll(server.port)).toEqual(new Set([30]))
  })

  test('leaves no listener behind if another one comes before its end', async () => {
    await using service = await serveTls()
    const { server } = service

    // Signals that come at the same moment are one.
    for (let signals = 0; signals < SIGNALS; signals++) {
      server.signal('SIGHUP')
      await nextTurn()
    }
    await service.renew(60)
    await service.hangUp()

    await until('all show the last certificate', async (see) =>
      see(await daysOnAll(server.port)).isSubsetOf(new Set([60])),
    )
  })

  test('changes nothing while the server ends, and takes no new connection', async () => {
    await using service = await serveTls()
    const { server, token } = service
    const to = { port: server.port, host: '127.0.0.1', rejectUnauthorized: false, agent: false as const }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': '22' }
    const held = request({ ...to, method: 'POST', path: '/plants', headers })
    held.write('{"id":1,"na')
    // The server waits for no client whose request is not under way.
    await scrapeUntil(server, (all) => all.plantstore_http_requests_in_flight === 1)

    await service.hangUpWhileItEnds()

    expect(daysShown(server.port)).rejects.toThrow('ECONNREFUSED')
    held.end('me":"Fern"}')
    const [answer] = await once(held, 'response')
    expect([answer.statusCode, await server.ended()]).toEqual([200, 0])
  })

  test('closes no listener while a server that ends waits for load balancers', async () => {
    await using service = await serveTls([...THREE, '--drain-wait', '4s'])
    await service.hangUp()

    await service.hangUpWhileItEnds()

    expect(await daysOnAll(service.server.port)).toEqual(new Set([30]))
  })

  test('resets few of the connections that come meanwhile', async () => {
    const changes = rounds(3, 100)
    await using service = await serveTls()
    const { server } = service
    let isOver = false
    const counts = { answered: 0, reset: 0 }
    const client = async () => {
      while (!isOver) {
        const answer = await fetch(`${server.address}/healthz`, {
          headers: { connection: 'close' },
          tls: { rejectUnauthorized: false },
        }).catch(() => undefined)
        if (answer === undefined) counts.reset += 1
        else expect(await answer.json()).toEqual({ status: 'ok' })
        counts.answered += Number(answer !== undefined)
      }
    }
    const clients = Array.from({ length: CLIENTS }, client)
    for (let change = 0; change < changes; change++) {
      const before = counts.answered
      await service.hangUp()
      await until('connections are answered again', (see) => see(counts.answered) > before)
    }
    isOver = true
    await Promise.all(clients)

    console.log(`${changes} changes: ${counts.reset} of ${counts.answered + counts.reset} connections were reset`)
    // No more than can wait in the queues of the listeners at each change.
    expect(counts.reset).toBeLessThanOrEqual(changes * CLIENTS)
  })
})

test.skipIf(lacks(OPENSSL, PROCESS_TOOLS))(
  "certbot's hook renews the certificate of a server on one core",
  async () => {
    using folder = makeFolder()
    const [lineage, home, bin] = [join(folder.path, 'lineage'), join(folder.path, 'home'), join(folder.path, 'bin')]
    const issue = async (days: number) => {
      const { certPath, keyPath } = await makeCertificate(folder.path, 'own', { days })
      renameSync(certPath, join(lineage, 'fullchain.pem'))
      renameSync(keyPath, join(lineage, 'privkey.pem'))
    }
    mkdirSync(lineage)
    await issue(30)
    cpSync(lineage, home, { recursive: true })
    const flags = ['--tls-cert', join(home, 'fullchain.pem'), '--tls-key', join(home, 'privkey.pem')]
    await using service = await serveDatabase(flags, { under: ['taskset', '-c', String(SERVER_CORE)] })
    const { server } = service
    // The thread that writes is the only other one.
    expect([workersOf(server.pid).length, await daysShown(server.port)]).toEqual([1, 30])
    const [, reload = ''] = /^ExecReload=(.*)$/m.exec(await readContrib('contrib/systemd/plantstore.service')) ?? []
    const systemctl = `#!/bin/sh\n[ "$*" = 'reload plantstore' ] && MAINPID=${server.pid} && ${reload}\n`
    await Bun.write(join(bin, 'systemctl'), systemctl)
    chmodSync(join(bin, 'systemctl'), 0o755)
    const hook = (await blockAfter('file: certbot-hook'))
      .replace('-o plantstore', `-o ${process.getuid?.()}`)
      .replace('/var/lib/plantstore/', home)

    await issue(60)
    const env = { RENEWED_LINEAGE: lineage, PATH: `${bin}:${process.env.PATH}` }
    expect(await runProgram(['sh', '-c', hook], { env })).toEqual({ stdout: '', stderr: '', exitCode: 0 })

    await until(RENEWED, (see) => see(server.stdout()).includes(RENEWED))
    expect([await daysShown(server.port), await server.end()]).toEqual([60, 0])
  },
)

test.skipIf(lacks(OPENSSL, FAKETIME))(
  'a server with TLS warns daily of a certificate that ends within 14 days',
  async () => {
    using clock = makeClock({ isMonotonic: true })
    await using service = await serveTls(['--threads', '1'], { days: 15, env: clock.env })
    const { server } = service
    const warnings = () => server.stdout().split('ends within 14 days').length - 1

    for (const day of [0, 1, 2]) {
      clock.jumpTo(day * DAY_MS + MINUTE_MS)
      // A server without requests sleeps by the clock of the machine.
      await until(`it warns on day ${day}`, async (see) => see(await daysShown(server.port)) > 0 && warnings() === day)
    }
    await server.kill()
    clock.forget(server.pid)
  },
)
