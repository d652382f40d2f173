import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readContrib, readPage } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { RULES } from '../../support/prometheus.ts'
import { PROMTOOL, runPromtool } from '../../support/promtool.ts'
import { lacks } from '../../support/requirement.ts'

const MIB = 1024 * 1024

/** A trial of an alert, in which it fires or not. */
interface Trial {
  /** Values by series, a minute apart, as promtool writes them. */
  readonly input: Readonly<Record<string, string>>
  /** The minute at which the alert is checked. */
  readonly minutes: number
  /** What its reader sees: the labels with which it fires, and the summary. `undefined` if it does not fire. */
  readonly fires:
    | { readonly labels?: Readonly<Record<string, string | undefined>>; readonly summary: string }
    | undefined
}

const INSTANCE = 'instance="a:9464"'
const up = `up{job="plantstore",${INSTANCE}}`
const started = `process_start_time_seconds{job="plantstore",${INSTANCE}}`
const rejected = (reason: string) => `plantstore_http_requests_rejected_total{${INSTANCE},reason="${reason}"}`
const requests = `plantstore_http_request_duration_seconds_count{${INSTANCE},operation="listPlants"}`
/** A metric without other labels. */
const gauge = (name: string) => `plantstore_${name}{${INSTANCE}}`

/** What a trial of a gauge has in each minute up to one, and whether it fires then. */
const gaugeTrial = (name: string, values: string, minutes: number, summary?: string): Trial => ({
  input: { [gauge(name)]: values },
  minutes,
  fires: summary === undefined ? undefined : { summary },
})

const DAY_S = 24 * 3600
const GIB = 1024 * MIB
const FILLS = 'The disk of a:9464 is full within a day. Make room.'
const OLD = 'The latest backup of a:9464 is older than a day, or there is none.'

/** When each alert fires, and similar cases in which it does not. promtool begins at the time 0. */
const TRIALS: Readonly<Record<string, readonly Trial[]>> = {
  PlantstoreDown: [
    {
      input: { [up]: '1 0 0 0' },
      minutes: 3,
      fires: {
        labels: { job: 'plantstore' },
        summary: 'a:9464 does not answer. Read the last log lines.',
      },
    },
    // Kubernetes has removed the pod, so that Prometheus has no target.
    {
      input: { 'up{job="other"}': '0 0 0 0' },
      minutes: 3,
      fires: {
        labels: { job: 'plantstore', instance: undefined },
        summary: 'No server answers. Read the last log lines.',
      },
    },
    { input: { [up]: '1 0 1 1' }, minutes: 3, fires: undefined },
    { input: { [up]: '1x3', 'up{job="other"}': '0 0 0 0' }, minutes: 3, fires: undefined },
  ],
  PlantstoreFailing: [
    ...['store_full', 'store_failed', 'bug'].map((reason) => ({
      input: { [rejected(reason)]: '0 0 1 1' },
      minutes: 3,
      fires: { labels: { reason }, summary: `a:9464 refuses requests, because ${reason}. Read its log.` },
    })),
    { input: { [rejected('store_failed')]: '7+0x10' }, minutes: 10, fires: undefined },
    { input: { [rejected('plant_exists')]: '0+9x10' }, minutes: 10, fires: undefined },
  ],
  PlantstoreRestarts: [
    {
      input: { [started]: '0x5 300x5 600x5 900x5' },
      minutes: 20,
      fires: {
        labels: { job: 'plantstore' },
        summary: 'a:9464 has restarted 3 times in half an hour. Look at its exit code.',
      },
    },
    { input: { [started]: '0x5 300x5 600x10' }, minutes: 20, fires: undefined },
  ],
  PlantstoreBusy: [
    {
      input: { [rejected('store_busy')]: '0+120x15', [requests]: '0+6000x15' },
      minutes: 15,
      fires: { summary: 'a:9464 refuses 2% of its requests, because it is too busy.' },
    },
    { input: { [rejected('store_busy')]: '0+1x15', [requests]: '0+101x15' }, minutes: 15, fires: undefined },
    { input: { [rejected('store_busy')]: '0+2x15', [requests]: '0+100x15' }, minutes: 3, fires: undefined },
    { input: { [rejected('rate_exceeded')]: '0+50x15', [requests]: '0+100x15' }, minutes: 15, fires: undefined },
  ],
  PlantstoreDiskSlow: [
    gaugeTrial('write_queue_age_seconds', '2 2 2', 2, 'A write on a:9464 has waited 2s for the disk.'),
    gaugeTrial('write_queue_age_seconds', '1 1 1', 2),
    gaugeTrial('write_queue_age_seconds', '2 0 2', 2),
  ],
  PlantstoreWalGrows: [
    gaugeTrial('wal_size_bytes', `${65 * MIB}x12`, 12, 'The WAL on a:9464 has 65MiB. End the program that reads it.'),
    gaugeTrial('wal_size_bytes', `${64 * MIB}x12`, 12),
    gaugeTrial('wal_size_bytes', `${65 * MIB}x5`, 5),
  ],
  PlantstoreDiskFills: [
    // A GiB an hour. After an hour 23.5 GiB are left, and then 25.
    gaugeTrial('disk_free_bytes', `${24.5 * GIB}-${GIB / 60}x60`, 60, FILLS),
    gaugeTrial('disk_free_bytes', `${26 * GIB}-${GIB / 60}x60`, 60),
    // It has just begun.
    gaugeTrial('disk_free_bytes', `${GIB}-${GIB / 60}x10`, 10),
    // A backup that is 1 % of the free space, and stays.
    gaugeTrial('disk_free_bytes', `${100 * GIB}x30 ${99 * GIB}x30`, 60),
  ],
  PlantstoreBackupOld: [
    // It was made 10 minutes less than 26 hours before.
    gaugeTrial('last_backup_timestamp_seconds', `${600 - 26 * 3600}x40`, 10 + 16, OLD),
    gaugeTrial('last_backup_timestamp_seconds', `${600 - 26 * 3600}x40`, 10 + 14),
    gaugeTrial('last_backup_timestamp_seconds', '0x40', 40),
  ],
  PlantstoreCertificateEnds: [
    gaugeTrial(
      'certificate_expires_in_seconds',
      `${13 * DAY_S}x20`,
      16,
      'The certificate of a:9464 ends in 13d 0h 0m 0s. Renew it, then reload or restart the server.',
    ),
    gaugeTrial('certificate_expires_in_seconds', `${14 * DAY_S}x20`, 16),
    gaugeTrial('certificate_expires_in_seconds', `${13 * DAY_S}x10`, 10),
  ],
  PlantstoreTokensExpire: [
    gaugeTrial('tokens_expiring', '3x20', 16, 'Tokens on a:9464 that expire within 7 days: 3. Replace them.'),
    gaugeTrial('tokens_expiring', '0x20', 16),
    gaugeTrial('tokens_expiring', '3x10', 10),
  ],
}

/** The alerts that wait for the next day. The others wake somebody. */
const TICKETS = ['PlantstoreBackupOld', 'PlantstoreCertificateEnds', 'PlantstoreTokensExpire']

/** The page that an alert names. */
const runbookOf = (rules: string, alertname: string) =>
  new RegExp(`- alert: ${alertname}\\n[^]*? runbook: (.+)\\n`).exec(rules)?.[1]

/** A folder with the rules and their trials. */
async function makeTrials(rules: string) {
  const folder = makeFolder()
  const tests = Object.entries(TRIALS).flatMap(([alertname, trials]) =>
    trials.map(({ input, minutes, fires }) => {
      const severity = TICKETS.includes(alertname) ? 'ticket' : 'page'
      const exp_alerts = fires && {
        exp_labels: { instance: 'a:9464', severity, ...fires.labels },
        exp_annotations: { summary: fires.summary, runbook: runbookOf(rules, alertname) },
      }
      return {
        interval: '1m',
        input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
        alert_rule_test: [{ eval_time: `${minutes}m`, alertname, exp_alerts: exp_alerts ? [exp_alerts] : [] }],
      }
    }),
  )
  await Bun.write(join(folder.path, 'rules.yml'), rules)
  // JSON is YAML.
  await Bun.write(join(folder.path, 'tests.yml'), JSON.stringify({ rule_files: ['rules.yml'], tests }))
  return folder
}

describe('the alert rules', () => {
  test('are ten, each with a comment and each with trials', async () => {
    const rules = await readContrib(RULES)
    const alerts = [...rules.matchAll(/^ +# .+\n +- alert: (\w+)$/gm)].map(([, name]) => name)

    expect(alerts).toHaveLength(10)
    expect(alerts).toEqual(Object.keys(TRIALS))
    expect(rules.match(/- alert:/g)).toHaveLength(10)
  })

  test('have a first step each in the documentation', async () => {
    const page = await readPage('docs/how-to/alerts.md')

    expect([...page.matchAll(/^\| `(\w+)` \| .+ \|$/gm)].map(([, name]) => name)).toEqual(Object.keys(TRIALS))
  })

  test.skipIf(lacks(PROMTOOL))('fire exactly when they should, with their summary, as promtool shows', async () => {
    using folder = await makeTrials(await readContrib(RULES))
    const checked = await runPromtool(['check', 'rules', 'rules.yml'], { cwd: folder.path })
    const tested = await runPromtool(['test', 'rules', 'tests.yml'], { cwd: folder.path })

    expect(checked).toMatchObject({ text: expect.stringContaining('SUCCESS: 10 rules found'), exitCode: 0 })
    expect(tested).toEqual({ text: expect.stringContaining('SUCCESS'), exitCode: 0 })
  })
})
