import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { blockAfter } from './support/docs.ts'
import { serve } from './support/executable.ts'
import { makeFolder } from './support/folder.ts'
import { scrape } from './support/metrics.ts'
import { PROMTOOL, runPromtool } from './support/promtool.ts'
import { lacks } from './support/requirement.ts'

const MIB = 1024 * 1024
const NAME = /\bplantstore_[a-z_]+/g

interface Trial {
  /** Values by series, a minute apart, as promtool writes them. */
  readonly input: Readonly<Record<string, string>>
  /** The minute at which the alert is checked. */
  readonly minutes: number
  /** The labels with which it fires. `undefined` if it does not fire. */
  readonly fires: Readonly<Record<string, string>> | undefined
}

const INSTANCE = 'instance="a:9464"'
const up = `up{job="plantstore",${INSTANCE}}`
const rejected = (reason: string) => `plantstore_http_requests_rejected_total{${INSTANCE},reason="${reason}"}`
const requests = `plantstore_http_requests_total{${INSTANCE},operation="listPlants",status="200"}`
const instance = { instance: 'a:9464' }

/** When each alert fires, and similar cases in which it does not. */
const TRIALS: Readonly<Record<string, readonly Trial[]>> = {
  PlantstoreDown: [
    { input: { [up]: '1 0 0 0' }, minutes: 3, fires: { ...instance, job: 'plantstore' } },
    { input: { [up]: '1 0 1 1' }, minutes: 3, fires: undefined },
    { input: { 'up{job="other"}': '0 0 0 0' }, minutes: 3, fires: undefined },
  ],
  PlantstoreFailing: [
    ...['store_full', 'store_failed', 'bug'].map((reason) => ({
      input: { [rejected(reason)]: '0 0 1 1' },
      minutes: 3,
      fires: { ...instance, reason },
    })),
    { input: { [rejected('store_failed')]: '7+0x10' }, minutes: 10, fires: undefined },
    { input: { [rejected('plant_exists')]: '0+9x10' }, minutes: 10, fires: undefined },
  ],
  PlantstoreBusy: [
    { input: { [rejected('store_busy')]: '0+2x15', [requests]: '0+100x15' }, minutes: 15, fires: instance },
    { input: { [rejected('in_flight_limit')]: '0+2x15', [requests]: '0+100x15' }, minutes: 15, fires: instance },
    { input: { [rejected('store_busy')]: '0+1x15', [requests]: '0+101x15' }, minutes: 15, fires: undefined },
    { input: { [rejected('store_busy')]: '0+2x15', [requests]: '0+100x15' }, minutes: 3, fires: undefined },
    { input: { [rejected('rate_exceeded')]: '0+50x15', [requests]: '0+100x15' }, minutes: 15, fires: undefined },
  ],
  PlantstoreDiskSlow: [
    { input: { 'plantstore_write_queue_age_seconds{instance="a:9464"}': '2 2 2' }, minutes: 2, fires: instance },
    { input: { 'plantstore_write_queue_age_seconds{instance="a:9464"}': '1 1 1' }, minutes: 2, fires: undefined },
    { input: { 'plantstore_write_queue_age_seconds{instance="a:9464"}': '2 0 2' }, minutes: 2, fires: undefined },
  ],
  PlantstoreWalGrows: [
    { input: { 'plantstore_wal_size_bytes{instance="a:9464"}': `${65 * MIB}x12` }, minutes: 12, fires: instance },
    { input: { 'plantstore_wal_size_bytes{instance="a:9464"}': `${64 * MIB}x12` }, minutes: 12, fires: undefined },
    { input: { 'plantstore_wal_size_bytes{instance="a:9464"}': `${65 * MIB}x5` }, minutes: 5, fires: undefined },
  ],
}

const readRules = () => blockAfter('alerts: promtool tests them')

/** A folder with the rules and their trials. */
async function makeTrials(rules: string) {
  const folder = makeFolder()
  const tests = Object.entries(TRIALS).flatMap(([alertname, trials]) =>
    trials.map(({ input, minutes, fires }) => ({
      interval: '1m',
      input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
      alert_rule_test: [
        { eval_time: `${minutes}m`, alertname, exp_alerts: fires === undefined ? [] : [{ exp_labels: fires }] },
      ],
    })),
  )
  await Bun.write(join(folder.path, 'rules.yml'), rules)
  // JSON is YAML.
  await Bun.write(join(folder.path, 'tests.yml'), JSON.stringify({ rule_files: ['rules.yml'], tests }))
  return folder
}

describe('the alert rules of the documentation', () => {
  test('are five, each with a comment and each with trials', async () => {
    const rules = await readRules()
    const alerts = [...rules.matchAll(/^ +# .+\n +- alert: (\w+)$/gm)].map(([, name]) => name)

    expect(alerts).toHaveLength(5)
    expect(alerts).toEqual(Object.keys(TRIALS))
    expect(rules.match(/- alert:/g)).toHaveLength(5)
  })

  test('use only metrics that exist', async () => {
    using folder = makeFolder()
    await using server = await serve(join(folder.path, 'plantstore.db'), ['--metrics-listen', '127.0.0.1:0'])
    await server.request('GET', '/healthz')
    const names = new Set(Object.keys(await scrape(server)).map((series) => series.split('{')[0]))
    const used = [...new Set((await readRules()).match(NAME))]

    expect(used.length).toBeGreaterThan(3)
    expect(used.filter((name) => !names.has(name))).toEqual([])
  })

  test.skipIf(lacks(PROMTOOL))('fire exactly when they should, as promtool shows', async () => {
    using folder = await makeTrials(await readRules())
    const checked = await runPromtool(['check', 'rules', 'rules.yml'], { cwd: folder.path })
    const tested = await runPromtool(['test', 'rules', 'tests.yml'], { cwd: folder.path })

    expect(checked).toMatchObject({ text: expect.stringContaining('SUCCESS: 5 rules found'), exitCode: 0 })
    expect(tested).toMatchObject({ text: expect.stringContaining('SUCCESS'), exitCode: 0 })
  })
})
