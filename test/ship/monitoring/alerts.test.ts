import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readContrib, readPage } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { RULES } from '../../support/prometheus.ts'
import { lacks, program } from '../../support/requirement.ts'
import { runIn } from '../run.ts'

/**
 * A trial of an alert: values by series, a minute apart, as promtool writes them; the minute at which the alert is checked; and
 * the summary that its reader sees, if it fires, with its labels beside `instance` and `severity`.
 */
type Trial = readonly [
  input: Readonly<Record<string, string>>,
  minutes: number,
  summary?: string | undefined,
  labels?: Readonly<Record<string, string | undefined>>,
]

const INSTANCE = 'instance="a:9464"'
const up = `up{job="plantstore",${INSTANCE}}`
const started = `process_start_time_seconds{job="plantstore",${INSTANCE}}`
const rejected = (reason: string) => `plantstore_http_requests_rejected_total{${INSTANCE},reason="${reason}"}`
const requests = `plantstore_http_request_duration_seconds_count{${INSTANCE},operation="listPlants"}`
/** The trial of a metric without other labels. */
const gauge = (name: string, values: string, minutes: number, summary?: string): Trial => [
  { [`plantstore_${name}{${INSTANCE}}`]: values },
  minutes,
  summary,
]

const DAY_S = 24 * 3600
const MIB = 1024 * 1024
const GIB = 1024 * MIB
const JOB = { job: 'plantstore' }
const RESTARTED = 'a:9464 has restarted 3 times in half an hour. Look at its exit code.'
const FILLS = 'The disk of a:9464 is full within a day. Make room.'
const OLD = 'The latest backup of a:9464 is older than a day, or there is none.'
const ENDS = 'The certificate of a:9464 ends in 13d 0h 0m 0s. Renew it, then reload or restart the server.'

/** When each alert fires, and similar cases in which it does not. promtool begins at the time 0. */
const TRIALS: Readonly<Record<string, readonly Trial[]>> = {
  PlantstoreDown: [
    [{ [up]: '1 0 0 0' }, 3, 'a:9464 does not answer. Read the last log lines.', JOB],
    // Kubernetes has removed the pod, so that Prometheus has no target.
    [{ 'up{job="other"}': '0x3' }, 3, 'No server answers. Read the last log lines.', { ...JOB, instance: undefined }],
    [{ [up]: '1 0 1 1' }, 3],
    [{ [up]: '1x3', 'up{job="other"}': '0x3' }, 3],
  ],
  PlantstoreFailing: [
    ...['store_full', 'store_failed', 'bug'].map((reason): Trial => {
      const summary = `a:9464 refuses requests, because ${reason}. Read its log.`
      return [{ [rejected(reason)]: '0 0 1 1' }, 3, summary, { reason }]
    }),
    [{ [rejected('store_failed')]: '7+0x10' }, 10],
    [{ [rejected('plant_exists')]: '0+9x10' }, 10],
  ],
  PlantstoreRestarts: [
    [{ [started]: '0x5 300x5 600x5 900x5' }, 20, RESTARTED, JOB],
    [{ [started]: '0x5 300x5 600x10' }, 20],
  ],
  PlantstoreBusy: [
    [
      { [rejected('store_busy')]: '0+120x15', [requests]: '0+6000x15' },
      ...([15, 'a:9464 refuses 2% of its requests, because it is too busy.'] as const),
    ],
    [{ [rejected('store_busy')]: '0+1x15', [requests]: '0+101x15' }, 15],
    [{ [rejected('store_busy')]: '0+2x15', [requests]: '0+100x15' }, 3],
    [{ [rejected('rate_exceeded')]: '0+50x15', [requests]: '0+100x15' }, 15],
  ],
  PlantstoreDiskSlow: [
    gauge('write_queue_age_seconds', '2 2 2', 2, 'A write on a:9464 has waited 2s for the disk.'),
    gauge('write_queue_age_seconds', '1 1 1', 2),
    gauge('write_queue_age_seconds', '2 0 2', 2),
  ],
  PlantstoreWalGrows: [
    gauge('wal_size_bytes', `${65 * MIB}x12`, 12, 'The WAL on a:9464 has 65MiB. End the program that reads it.'),
    gauge('wal_size_bytes', `${64 * MIB}x12`, 12),
    gauge('wal_size_bytes', `${65 * MIB}x5`, 5),
  ],
  PlantstoreDiskFills: [
    // A GiB an hour. After an hour 23.5 GiB are left, and then 25.
    gauge('disk_free_bytes', `${24.5 * GIB}-${GIB / 60}x60`, 60, FILLS),
    gauge('disk_free_bytes', `${26 * GIB}-${GIB / 60}x60`, 60),
    // It has just begun.
    gauge('disk_free_bytes', `${GIB}-${GIB / 60}x10`, 10),
    // A backup that is 1 % of the free space, and stays.
    gauge('disk_free_bytes', `${100 * GIB}x30 ${99 * GIB}x30`, 60),
  ],
  PlantstoreBackupOld: [
    // It was made 10 minutes less than 26 hours before.
    gauge('last_backup_timestamp_seconds', `${600 - 26 * 3600}x40`, 10 + 16, OLD),
    gauge('last_backup_timestamp_seconds', `${600 - 26 * 3600}x40`, 10 + 14),
    gauge('last_backup_timestamp_seconds', '0x40', 40),
  ],
  PlantstoreCertificateEnds: [
    gauge('certificate_expires_in_seconds', `${13 * DAY_S}x20`, 16, ENDS),
    gauge('certificate_expires_in_seconds', `${14 * DAY_S}x20`, 16),
    gauge('certificate_expires_in_seconds', `${13 * DAY_S}x10`, 10),
  ],
  PlantstoreTokensExpire: [
    gauge('tokens_expiring', '3x20', 16, 'Tokens on a:9464 that expire within 7 days: 3. Replace them.'),
    gauge('tokens_expiring', '0x20', 16),
    gauge('tokens_expiring', '3x10', 10),
  ],
}

/** The alerts that wait for the next day. The others wake somebody. */
const TICKETS = ['PlantstoreBackupOld', 'PlantstoreCertificateEnds', 'PlantstoreTokensExpire']

/** A folder with the rules and their trials. */
async function makeTrials(rules: string) {
  const folder = makeFolder()
  const tests = Object.entries(TRIALS).flatMap(([alertname, trials]) => {
    const severity = TICKETS.includes(alertname) ? 'ticket' : 'page'
    const runbook = new RegExp(`- alert: ${alertname}\\n[^]*? runbook: (.+)\\n`).exec(rules)?.[1]
    return trials.map(([input, minutes, summary, labels]) => {
      const alert = {
        exp_labels: { instance: 'a:9464', severity, ...labels },
        exp_annotations: { summary, runbook },
      }
      const exp_alerts = summary === undefined ? [] : [alert]
      return {
        interval: '1m',
        input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
        alert_rule_test: [{ eval_time: `${minutes}m`, alertname, exp_alerts }],
      }
    })
  })
  await Bun.write(join(folder.path, 'rules.yml'), rules)
  // JSON is YAML.
  await Bun.write(join(folder.path, 'tests.yml'), JSON.stringify({ rule_files: ['rules.yml'], tests }))
  return folder
}

describe('the alert rules', () => {
  test('have trials, a comment, and a first step in the documentation each', async () => {
    const rules = await readContrib(RULES)
    const page = await readPage('docs/how-to/alerts.md')
    const namesIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name)

    expect(namesIn(rules, /- alert: (\w+)$/gm)).toEqual(Object.keys(TRIALS))
    expect(namesIn(rules, /^ +# .+\n +- alert: (\w+)$/gm)).toEqual(Object.keys(TRIALS))
    expect(namesIn(page, /^\| `(\w+)` \| .+ \|$/gm)).toEqual(Object.keys(TRIALS))
  })

  test.skipIf(lacks(program('promtool')))(
    'fire exactly when they should, with their summary, as promtool shows',
    async () => {
      using folder = await makeTrials(await readContrib(RULES))
      const promtool = (what: string, file: string) => runIn(['promtool', what, 'rules', file], folder.path)

      expect(await promtool('check', 'rules.yml')).toMatchObject({ exitCode: 0 })
      expect(await promtool('test', 'tests.yml')).toMatchObject({ exitCode: 0 })
    },
  )
})
