import { join } from 'node:path'
import { readContrib } from './docs.ts'
import { makeFolder } from './folder.ts'
import { startProgram } from './program.ts'
import { program } from './requirement.ts'
import { until } from './until.ts'

export const PROMETHEUS = program('prometheus')

const PROMETHEUS_CONFIGURATION = 'contrib/prometheus/prometheus.yml'
export const RULES = 'contrib/prometheus/plantstore-rules.yml'

/** So often it scrapes and evaluates the rules. A server on a busy machine answers within this time. */
const INTERVAL = '1s'

/** A value of a series, with its labels. */
interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

/** An alert whose condition is true: `pending`, and after the time of its rule `firing`. */
export interface Alert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly state: 'pending' | 'firing'
}

/** Starts Prometheus with the configuration and the rules of `contrib`. It scrapes servers at these URLs, often. */
export async function startPrometheus(metricsUrls: readonly string[]) {
  const folder = makeFolder()
  const config = Bun.YAML.parse(await readContrib(PROMETHEUS_CONFIGURATION)) as {
    scrape_configs: [{ static_configs: [{ targets: string[] }] }]
  }
  config.scrape_configs[0].static_configs[0].targets = metricsUrls.map((url) => new URL(url).host)
  const global = { scrape_interval: INTERVAL, scrape_timeout: INTERVAL, evaluation_interval: INTERVAL }
  // JSON is YAML.
  await Bun.write(join(folder.path, 'prometheus.yml'), JSON.stringify({ ...config, global }))
  await Bun.write(join(folder.path, 'plantstore-rules.yml'), await readContrib(RULES))
  const flags = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', '--web.listen-address=127.0.0.1:0']
  const { child, stderr, ended } = startProgram(['prometheus', ...flags], { cwd: folder.path })
  const addressOf = () => /msg="Listening on" address=(\S+)/.exec(stderr())?.[1]
  const isReady = async () => addressOf() !== undefined && (await fetch(`http://${addressOf()}/-/ready`)).status === 200
  await until('Prometheus is ready', () => {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}: ${stderr()}`)
    return isReady()
  })
  const ask = async (path: string, parameters: Readonly<Record<string, string>> = {}) => {
    const answer = await fetch(`http://${addressOf()}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const { data, error } = (await answer.json()) as { data: unknown; error?: string }
    if (error !== undefined) throw new Error(`${path} ${JSON.stringify(parameters)}: ${error}`)
    return data
  }
  return {
    /** The values of an instant query now. */
    async query(query: string): Promise<readonly Sample[]> {
      const { result } = (await ask('query', { query })) as {
        result: { metric: Sample['metric']; value: [number, string] }[]
      }
      return result.map(({ metric, value: [, text] }) => ({ metric, value: Number(text) }))
    },
    /** The values of a label of a metric. */
    labelValues: async (label: string, metric: string) =>
      (await ask(`label/${label}/values`, { 'match[]': metric })) as readonly string[],
    alerts: async () => ((await ask('alerts')) as { alerts: readonly Alert[] }).alerts,
    /** The health of each rule, by its name. It is `ok` once its query has run without error. */
    async rules(): Promise<Readonly<Record<string, string>>> {
      const { groups } = (await ask('rules')) as { groups: { rules: { name: string; health: string }[] }[] }
      return Object.fromEntries(groups.flatMap(({ rules }) => rules).map(({ name, health }) => [name, health]))
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      folder[Symbol.dispose]()
    },
  }
}
