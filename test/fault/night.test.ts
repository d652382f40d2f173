import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { readPanel } from '../support/dashboard.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { serve } from '../support/executable.ts'
import { metricsUrlOf } from '../support/metrics.ts'
import { PROMETHEUS, startPrometheus } from '../support/prometheus.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { logLines } from './server-log.ts'

const DISK_BYTES = 16 * 1024 * 1024
/** How much more of the disk is taken at each step, and how often. */
const STEP_BYTES = 64 * 1024
const STEP_MS = 100

test.skipIf(lacks(PROMETHEUS, MOUNTS))(
  'in a night in which the disk fills, an alert predicts it, then panels, an alert and the log say it',
  async () => {
    using disk = mountDisk(DISK_BYTES)
    const database = join(disk.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database, ['--metrics-listen', '127.0.0.1:0'])
    // The rule of this alert does not wait.
    await using prometheus = await startPrometheus([metricsUrlOf(server)], ['PlantstoreDiskFills'])
    const firing = async () => (await prometheus.alerts()).filter(({ state }) => state === 'firing')
    const fired = (name: string) =>
      until(`${name} fires`, async (see) => see(await firing()).find(({ labels }) => labels.alertname === name))
    const panel = (title: string) => readPanel(prometheus, title)
    const shown = async (title: string) => (await panel(title))[0]?.value ?? Number.NaN
    const create = async (id: number) => {
      const body = { id, name: 'x'.repeat(50_000) }
      return (await server.request('POST', '/plants', { token, body })).status
    }
    await until('the first values are there', async (see) => see(await shown('Free space')) > 0.8)
    const quiet = await firing()
    let filledBytes = 0
    const filling = setInterval(() => {
      filledBytes += STEP_BYTES
      disk.fill(filledBytes)
    }, STEP_MS)
    const predicted = await fired('PlantstoreDiskFills')
    const freeThen = await shown('Free space')
    clearInterval(filling)
    disk.fillUp()
    let id = 0
    await until('a create is refused', async (see) => see(await create(id++)) === 503)
    const failing = await fired('PlantstoreFailing')
    await until('the panel shows that the server is up', async (see) => see(await shown('Up')) === 1)
    await until('the panel shows a full disk', async (see) => see(await shown('Free space')) < 0.02)

    expect(quiet).toEqual([])
    expect(freeThen).toBeGreaterThan(0.02)
    expect(predicted.annotations.summary).toEndWith(' is full within a day. Make room.')
    expect(failing.labels).toMatchObject({ reason: 'store_full', severity: 'page' })
    expect(failing.annotations.summary).toEndWith(' refuses requests, because store_full. Read its log.')
    expect(await shown('Requests that failed, in 5 minutes')).toBeGreaterThan(0)
    expect((await panel('Refused requests')).map(({ metric }) => metric.reason)).toEqual(['store_full'])
    const [warning] = logLines(server).filter(({ level }) => level === 'warn')
    expect(warning).toMatchObject({ msg: 'the store refused', kind: 'store_full', requestId: expect.any(String) })
  },
)
