import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeCertificate, OPENSSL } from '../../support/certificates.ts'
import { queriesOf, readDashboard } from '../../support/dashboard.ts'
import { readContrib } from '../../support/docs.ts'
import { runPlantstore, serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { metricsUrlOf } from '../../support/metrics.ts'
import { PROMETHEUS, RULES, startPrometheus } from '../../support/prometheus.ts'
import { lacks } from '../../support/requirement.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'

/** So many clients send requests at once. */
const CLIENTS = 4
/** How long a query may take to return data. It takes some scrapes. */
const WAIT = { limitMs: 60_000, lookMs: 100 }

const { panels, templating } = await readDashboard()
const { groups } = Bun.YAML.parse(await readContrib(RULES)) as {
  groups: [{ rules: readonly { readonly alert: string; readonly expr: string }[] }]
}
const [{ rules }] = groups

/** The queries of the dashboard and of the rules. With `bool`, a comparison returns 0 or 1, not nothing if it is false. */
const queries = [
  ...panels.flatMap((panel) => queriesOf(panel).map((query) => ({ title: panel.title, query }))),
  ...rules.map(({ alert, expr }) => ({ title: alert, query: expr.replace(/ (==|>|<)\s/, ' $1 bool ') })),
]

/** A server with TLS, a backup and a token that expires, under load. */
async function startLoaded() {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const { certPath, keyPath } = await makeCertificate(folder.path, 'server')
  const token = await createTokenIn(database)
  await runPlantstore(['token', 'create', '--user', 'me', '--expires', '3d', '--database', database])
  const server = await serve(database, [
    ...['--tls-cert', certPath, '--tls-key', keyPath, '--access-log', 'off', '--metrics-listen', '127.0.0.1:0'],
  ])
  await runPlantstore(['backup', join(folder.path, 'backup.db'), '--database', database])
  let isOver = false
  const ca = await Bun.file(certPath).text()
  const ask = (method: string, path: string, body?: object) =>
    fetch(server.url + path, {
      method,
      tls: { ca },
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).then((answer) => answer.text())
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let count = 0; !isOver; count++) {
      const id = client + count * CLIENTS
      await ask('POST', '/plants', { id, name: 'Fern' })
      for (const path of ['/plants?limit=10', `/plants/${id}`, '/nothing', '/readyz']) await ask('GET', path)
      await ask('DELETE', `/plants/${id - 100}`)
      await Bun.sleep(5)
    }
  })
  return {
    metricsUrl: metricsUrlOf(server),
    async [Symbol.asyncDispose]() {
      isOver = true
      await Promise.all(clients)
      await server.kill()
      folder[Symbol.dispose]()
    },
  }
}

describe.skipIf(lacks(PROMETHEUS, OPENSSL))(
  'Prometheus, with the configuration of contrib and a server under load',
  () => {
    let loaded: Awaited<ReturnType<typeof startLoaded>>
    let prometheus: Awaited<ReturnType<typeof startPrometheus>>

    beforeAll(async () => {
      loaded = await startLoaded()
      prometheus = await startPrometheus([loaded.metricsUrl])
    })

    afterAll(async () => {
      await prometheus?.[Symbol.asyncDispose]()
      await loaded?.[Symbol.asyncDispose]()
    })

    test.each(queries)('returns numbers for $title: $query', async ({ query }) => {
      const ask = async () => (await prometheus.query(query)).map(({ value }) => value).filter(Number.isFinite)
      const found = await until('the query returns numbers', async (see) => see(await ask()).length > 0 && ask(), WAIT)

      if (query.includes(' bool ')) expect(found.filter((number) => number !== 0 && number !== 1)).toEqual([])
    })

    test('lists the server for the variable of the dashboard', async () => {
      const { host } = new URL(loaded.metricsUrl)

      expect(templating.list[1]?.query).toMatchObject({
        query: 'label_values(plantstore_build_info, instance)',
      })
      expect(await prometheus.labelValues('instance', 'plantstore_build_info')).toEqual([host])
    })

    test('runs all ten rules without error, and the expiring token is an alert', async () => {
      const findTokenAlert = async () =>
        (await prometheus.alerts()).find(({ labels }) => labels.alertname === 'PlantstoreTokensExpire')
      const areKnown = async () => !Object.values(await prometheus.rules()).includes('unknown')
      await until('all rules have run', areKnown, WAIT)
      const alert = await until('the token is an alert', findTokenAlert, WAIT)

      expect(await prometheus.rules()).toEqual(Object.fromEntries(rules.map(({ alert }) => [alert, 'ok'])))
      expect(alert.state).toBe('pending')
      expect(alert.annotations.summary).toEndWith(' that expire within 7 days: 1. Replace them.')
      // Other programs of this machine may fill its disk during these seconds.
      const expected = new Set(['PlantstoreTokensExpire', 'PlantstoreDiskFills'])
      expect((await prometheus.alerts()).filter(({ labels }) => !expected.has(labels.alertname ?? ''))).toEqual([])
    })
  },
)
