import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { DASHBOARD, readDashboard } from '../../support/dashboard.ts'
import { readContrib } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { PROJECT, runIn } from '../run.ts'

/** The width of Grafana's grid. */
const GRID_COLUMNS = 24

describe('the dashboard', () => {
  test("fits Grafana's own schema, which refuses a misspelt field", async () => {
    const text = await readContrib(DASHBOARD)
    const wrong = text.replace('"lineWidth": 1', '"lineWidths": 1')

    expect(await misfits([text, wrong])).toEqual([wrong])
  })

  test('has about a dozen panels with a title, a description and a query, in a grid without overlaps', async () => {
    const { panels } = await readDashboard()
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
    )

    expect(panels.length).toBeWithin(10, 17)
    expect(panels.filter(({ title, description, targets: [query] }) => !(title && description && query))).toEqual([])
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    expect(new Set(cells).size).toBe(cells.length)
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > GRID_COLUMNS)).toEqual([])
  })
})

const MODULES = 'dist/esm/raw/composable'

/**
 * The dashboards in which the TypeScript compiler finds an unknown field, a missing field, or a wrong type. Grafana publishes its
 * schema as types. They have enumerations where JSON has texts.
 */
async function misfits(dashboards: readonly string[]): Promise<readonly string[]> {
  const schema = join(PROJECT, 'node_modules/@grafana/schema')
  const types = `import type * as grafana from '${schema}'
    import type * as stat from '${schema}/${MODULES}/stat/panelcfg/x/StatPanelCfg_types.gen'
    import type * as timeseries from '${schema}/${MODULES}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen'
    type Json<T> = T extends string ? \`\${T}\` : T extends object ? { [Key in keyof T]: Json<T[Key]> } : T
    type Panel<Type, Options, Custom> = Omit<grafana.Panel, 'type' | 'options' | 'fieldConfig' | 'targets'> & {
      type: Type
      options: Options
      fieldConfig: { defaults: Omit<grafana.FieldConfig, 'custom'> & { custom?: Custom }; overrides: [] }
      targets: (grafana.DataQuery & { expr: string; legendFormat: string })[]
    }
    export type Dashboard = Json<Omit<grafana.Dashboard, 'panels'> & {
      panels: (Panel<'stat', stat.Options, never> | Panel<'timeseries', timeseries.Options, timeseries.FieldConfig>)[]
    }>`
  using folder = makeFolder()
  await Bun.write(join(folder.path, 'types.ts'), types)
  const files = dashboards.map((_, index) => join(folder.path, `${index}.ts`))
  for (const [index, text] of dashboards.entries()) {
    const source = `import type { Dashboard } from './types.ts'\nexport const it: Dashboard = ${text}`
    await Bun.write(files[index] ?? '', source)
  }
  const options = '--noEmit --strict --skipLibCheck --ignoreConfig --allowImportingTsExtensions --module preserve'
  const tsc = [join(PROJECT, 'node_modules/.bin/tsc'), ...options.split(' '), '--pretty', 'false']
  const { stdout } = await runIn([...tsc, ...files])
  return dashboards.filter((_, index) => new RegExp(`\\b${index}\\.ts\\(.*error TS`).test(stdout))
}
