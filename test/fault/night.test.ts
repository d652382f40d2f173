import { describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { readPanel } from '../support/dashboard.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { IS_LONG } from '../support/long.ts'
import { metricsUrlOf } from '../support/metrics.ts'
import { type Alert, PROMETHEUS, startPrometheus } from '../support/prometheus.ts'
import { lacks, program } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { logLines } from './server-log.ts'

const MIB = 1024 * 1024
const DAY_S = 86_400
/** How much more of the disk is taken at each step, and how often. */
const STEP_BYTES = 64 * 1024
const STEP_MS = 100
/** The pause of a client that stays within its limit. */
const GUEST_PAUSE_MS = 100

const AGE = 'Age of the latest backup'

/** A server in a folder, with a backup, two users, and a Prometheus. The rules of these alerts do not wait. */
async function startNight(folder: string, alertsAtOnce: readonly string[], flags: readonly string[] = []) {
  using backups = makeFolder()
  const database = join(folder, 'plantstore.db')
  const [token, guest] = [await createTokenIn(database, 'flood'), await createTokenIn(database, 'guest')]
  const run = (args: readonly string[], under: readonly string[] = []) =>
    runPlantstore([...args, '--database', database], { under })
  await run(['backup', join(backups.path, 'first.db')])
  const server = await serve(database, ['--metrics-listen', '127.0.0.1:0', ...flags])
  const prometheus = await startPrometheus([metricsUrlOf(server)], alertsAtOnce)
  const alerts = async (): Promise<readonly Alert[]> =>
    (await prometheus.alerts()).filter(({ state }) => state === 'firing')
  const find = async (name: string) => (await alerts()).find(({ labels }) => labels.alertname === name)
  const panel = (title: string) => readPanel(prometheus, title)
  return {
    server,
    token,
    guest,
    run,
    alerts,
    /** Waits until an alert fires, and returns its labels and what it says. */
    fired: (name: string): Promise<Alert> => until(`${name} fires`, () => find(name)),
    isFiring: async (name: string) => (await find(name)) !== undefined,
    panel,
    /** The only value that a panel shows. */
    valueOf: async (title: string) => (await panel(title))[0]?.value ?? Number.NaN,
    create: (id: number, name: string, by = token) =>
      server.request('POST', '/plants', { token: by, body: { id, name } }),
    /** Prints what an operator sees, for people who run this test to read it. */
    async tell(act: string, titles: readonly string[], lines: readonly object[]): Promise<void> {
      if (!IS_LONG) return
      const told = [`\n${act}`]
      for (const title of titles) {
        const values = (await panel(title)).map(({ name, value }) => `${name} ${value.toPrecision(4)}`)
        told.push(`panel  ${title}: ${values.join(', ')}`)
      }
      for (const { labels, annotations } of await alerts()) {
        told.push(`alert  ${labels.alertname} (${labels.severity}): ${annotations.summary}`)
      }
      console.log([...told, ...lines.map((line) => `log    ${JSON.stringify(line)}`)].join('\n'))
    },
    async [Symbol.asyncDispose]() {
      await prometheus[Symbol.asyncDispose]()
      await server.kill()
    },
  }
}

describe.skipIf(lacks(PROMETHEUS, MOUNTS, program('faketime')))('a night', () => {
  test.concurrent('in which the disk fills: an alert predicts it, then panels, an alert and the log say it', async () => {
    using disk = mountDisk(16 * MIB)
    await using night = await startNight(disk.path, ['PlantstoreDiskFills'])
    await until('the first values are there', async () => (await night.valueOf('Free space')) > 0.8)
    const quiet = await night.alerts()
    let filledBytes = 0
    const filling = setInterval(() => {
      filledBytes += STEP_BYTES
      disk.fill(filledBytes)
    }, STEP_MS)
    const predicted = await night.fired('PlantstoreDiskFills')
    const freeThen = await night.valueOf('Free space')
    clearInterval(filling)
    disk.fillUp()
    let id = 0
    await until('a create is refused', async () => (await night.create(id++, 'x'.repeat(50_000))).status === 503)
    const failing = await night.fired('PlantstoreFailing')
    const lists = await night.server.request('GET', '/plants?limit=1', { token: night.token })
    await until('the panel shows that the server is up', async () => (await night.valueOf('Up')) === 1)
    await until('the panel shows a full disk', async () => (await night.valueOf('Free space')) < 0.02)
    const lines = logLines(night.server).filter(({ level }) => level === 'warn')
    const titles = ['Up', 'Requests that failed, in 5 minutes', 'Free space', 'Refused requests', 'Space']
    await night.tell('The disk fills.', titles, lines.slice(0, 1))

    expect(quiet).toEqual([])
    expect(freeThen).toBeGreaterThan(0.02)
    expect(predicted.annotations.summary).toEndWith(' is full within a day. Make room.')
    expect(failing.labels).toMatchObject({ reason: 'store_full', severity: 'page' })
    expect(failing.annotations.summary).toEndWith(' refuses requests, because store_full. Read its log.')
    expect(lists.status).toBe(200)
    expect(await night.valueOf('Requests that failed, in 5 minutes')).toBeGreaterThan(0)
    expect((await night.panel('Refused requests')).map(({ metric }) => metric.reason)).toEqual(['store_full'])
    expect(lines[0]).toMatchObject({ msg: 'the store refused', kind: 'store_full', requestId: expect.any(String) })

    disk.makeRoom()
    await until('creates succeed again', async () => (await night.create(id++, 'Fern')).status === 200)
    await until('the panel shows room', async () => (await night.valueOf('Free space')) > 0.5)
  })

  test.concurrent('in which one client floods: its own requests are refused, and panels and the log say whose they are', async () => {
    using folder = makeFolder()
    await using night = await startNight(folder.path, [], ['--rate-limit', '50/s'])
    let isOver = false
    const flood = Array.from({ length: 4 }, async () => {
      while (!isOver) await night.server.request('GET', '/plants?limit=1', { token: night.token })
    })
    const statuses = new Set<number>()
    let id = 0
    await until('the panel shows the flood', async () => {
      statuses.add((await night.create(id++, 'Fern', night.guest)).status)
      await Bun.sleep(GUEST_PAUSE_MS)
      const refused = await night.panel('Refused requests')
      return refused.some(({ metric, value }) => metric.reason === 'rate_exceeded' && value > 10)
    })
    const alerts = await night.alerts()
    const lines = logLines(night.server).filter(({ status }) => status === 429)
    await night.tell('One client floods.', ['Up', 'Refused requests', 'Requests'], lines.slice(0, 1))
    isOver = true
    await Promise.all(flood)

    expect([...statuses]).toEqual([200])
    // The limit does its work, so nobody needs to wake up.
    expect(alerts).toEqual([])
    const senders = lines.map(({ user, tokenId, remoteAddress }) => `${user} ${tokenId} ${remoteAddress}`)
    expect(new Set(senders)).toEqual(new Set(['flood 1 127.0.0.1']))
  })

  test.concurrent('in which backups have stopped for two days: a panel and an alert say it, until there is a backup', async () => {
    using folder = makeFolder()
    using full = mountDisk(MIB)
    full.fillUp()
    await using night = await startNight(folder.path, ['PlantstoreBackupOld'])
    const backups = join(folder.path, 'backups')
    mkdirSync(backups)
    await night.run(['backup', '--dir', backups], ['faketime', '-f', '-2d'])
    const old = await night.fired('PlantstoreBackupOld')
    // As the timer runs it every night.
    const failed = await night.run(['backup', '--dir', full.path])
    await until('the panel shows two days', async () => (await night.valueOf(AGE)) > 2 * DAY_S - 60)
    await night.tell('Backups have stopped for two days.', ['Up', AGE], [failed])
    const ageS = await night.valueOf(AGE)
    const others = (await night.alerts()).filter(({ labels }) => labels.alertname !== 'PlantstoreBackupOld')
    await night.run(['backup', '--dir', backups])

    expect(old.labels.severity).toBe('ticket')
    expect(old.annotations.summary).toEndWith(' is older than a day, or there is none.')
    expect(failed).toMatchObject({ stderr: expect.stringContaining('there is no space: make room.'), exitCode: 1 })
    expect(ageS).toBeWithin(2 * DAY_S - 60, 2 * DAY_S + 600)
    expect(others).toEqual([])
    await until('the alert is over', async () => !(await night.isFiring('PlantstoreBackupOld')))
    expect(await night.valueOf(AGE)).toBeLessThan(600)
  })
})
