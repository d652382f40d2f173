import { readContrib } from './docs.ts'

export const DASHBOARD = 'contrib/grafana/plantstore.json'

/** The parts of a dashboard that the tests read. `dashboard.test.ts` checks the whole against Grafana's schema. */
interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] }
  readonly panels: readonly Panel[]
}

interface Panel {
  readonly id: number
  readonly title: string
  readonly description: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets: readonly { readonly expr: string }[]
}

export const readDashboard = async (): Promise<Dashboard> => JSON.parse(await readContrib(DASHBOARD))

/** What Grafana puts in the place of its variables: all servers, and a time that has several scrapes. */
const VARIABLES: Readonly<Record<string, string>> = { $instance: '.*', $__rate_interval: '1m' }

/** The queries of a panel, as Grafana sends them. */
export const queriesOf = ({ targets }: Panel): readonly string[] =>
  targets.map(({ expr }) => expr.replace(/\$\w+/g, (name) => VARIABLES[name] ?? name))
