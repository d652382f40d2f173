import { expect } from 'bun:test'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { answerOf, codeOf, codeOfAnswer } from '../../cli/support/service-client.ts'
import { runPlantstore, serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { administer, runScript } from '../../support/postgres.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { endWithThisProcess, freePort, OWN_POSTGRES } from '../../support/postgres-system.ts'
import { startProgram } from '../../support/program.ts'
import type { Requirement } from '../../support/requirement.ts'
import { isBusy, SLACK_MS } from '../../support/slack.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { until } from '../../support/until.ts'
import { testRounds } from '../rounds.ts'
import { QUIET, type Server } from '../test-database.ts'

const PROGRAM = Bun.which('pgpool') ?? Bun.which('pgpool', { PATH: '/usr/sbin' })

const PGPOOL: Requirement = { missing: 'pgpool is missing', isMet: () => PROGRAM !== null }

/** Starts Pgpool-II before a primary and its standbys. Each session reads from one of them, by their weights. */
async function startPgpool(servers: readonly Cluster[], weights: readonly number[]) {
  if (PROGRAM === null) throw new Error('pgpool is missing')
  const folder = makeFolder()
  const port = freePort()
  const file = join(folder.path, 'pgpool.conf')
  const backends = servers.map(({ port }, index) => [
    `backend_hostname${index} = '127.0.0.1'`,
    `backend_port${index} = ${port}`,
    `backend_weight${index} = ${weights[index]}`,
  ])
  const paths = ['socket_dir', 'pcp_socket_dir', 'logdir', 'work_dir'].map((name) => `${name} = '${folder.path}'`)
  const settings = [
    "listen_addresses = '127.0.0.1'",
    `port = ${port}`,
    `pcp_port = ${freePort()}`,
    `pid_file_name = '${join(folder.path, 'pid')}'`,
    "backend_clustering_mode = 'streaming_replication'",
    "sr_check_user = 'plantstore'",
  ]
  writeFileSync(file, [...settings, ...paths, ...backends.flat()].join('\n'))
  const { child, stderr } = startProgram([PROGRAM, '-n', '-f', file, '-a', '/dev/null', '-F', '/dev/null'])
  endWithThisProcess(['kill', '-INT', String(child.pid)], folder.path)
  await until('Pgpool-II has started', (see) => see(stderr()).includes('successfully started'))
  return {
    url: `postgres://plantstore@127.0.0.1:${port}/postgres?sslmode=disable`,
    async [Symbol.asyncDispose]() {
      // Its processes end with it.
      child.kill('SIGINT')
      await child.exited
      folder[Symbol.dispose]()
    },
  }
}

const SOURCE = resolve(import.meta.dir, '../../..')
const TO_PRIMARY = '/*NO LOAD BALANCE*/'
const CLIENTS = 16
const CREATES = 15
/** The age of the result that `/readyz` answers; see READINESS_MAX_AGE_MS in src. */
const READINESS_MAX_AGE_MS = 1000
/** For so long the server must read from the primary alone; less a pause, because the last stamp may be older than the change. */
const PRIMARY_MIN_MS = 5000 - 500
/** So many looks that fail are none of the primary. */
const FAILED_LOOKS = 5

/** A primary, and a standby that applies each write three seconds later. */
async function startPair() {
  const primary = await startCluster()
  const token = await createTokenIn(primary.url)
  const delay = { recovery_min_apply_delay: '3s' }
  const standby = await startCluster(delay, { standby: { of: primary, name: 'standby' } })
  return {
    primary,
    standby,
    token,
    [Symbol.dispose]() {
      standby[Symbol.dispose]()
      primary[Symbol.dispose]()
    },
  }
}

/** Creates plants, and reads each right after its answer: alone, and in a list. Returns how many reads lacked it, and all codes. */
async function findStale(server: Server, token: string) {
  const codes = new Set<number>()
  let [reads, stale] = [0, 0]
  const work = async (client: number) => {
    for (let id = client * CREATES; id < (client + 1) * CREATES; id++) {
      const create = async () => {
        const code = await codeOfAnswer(server.request('POST', '/plants', { token, body: { id, name: 'Fern' } }))
        // A busy machine may let it wait for too long.
        return !(code === 50303 && isBusy()) && code
      }
      codes.add(await until('a create is answered in time', create))
      for (const path of [`/plants/${id}?include=id`, `/plants?include=id&limit=1&after=${id - 1}`]) {
        const answer = await server.request('GET', path, { token })
        if (!(await answer.text()).includes(`"id":${id},`)) stale++
        reads++
      }
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, client) => work(client)))
  return { codes: [...codes], reads, stale }
}

/** Waits until the server says that a standby answers, and then until it refuses everything. Asks for lists meanwhile. */
async function untilRefusing(server: Server, token: string): Promise<void> {
  const ask = () => Promise.all(Array.from({ length: CLIENTS }, () => codeOf(server, token)))
  await until('a standby is noticed', async (see) => see(await ask()) && noticed(server) > 0)
  const noticedMs = performance.now()
  expect(await codeOf(server, token)).toBe(50302)
  await until(
    'the server is not ready',
    async (see) => see(await answerOf(server.request('GET', '/readyz'))).status === 503,
  )
  expect(performance.now() - noticedMs).toBeLessThan(READINESS_MAX_AGE_MS + SLACK_MS)
}

/** How many lines of the log say that a standby answers. */
const noticed = (server: Server): number => server.stdout().split('a standby answers reads').length - 1

testRounds(
  'a service behind Pgpool-II reads from the primary alone, and without its comment notices that it does not',
  { short: 1, long: 10, needs: [OWN_POSTGRES, PGPOOL] },
  async () => {
    using pair = await startPair()
    using folder = makeFolder()
    await using pool = await startPgpool([pair.primary, pair.standby], [1, 1])
    const select = () => administer(pool.url, (sql) => sql`select current_setting('in_hot_standby')`.values())
    const sessions = await Promise.all(Array.from({ length: 2 * CLIENTS }, select))
    expect(new Set(sessions.flat(2))).toEqual(new Set(['on', 'off']))
    await using server = await serve(pool.url, QUIET)

    const found = await findStale(server, pair.token)
    const copy = ['copy', '--snapshot', '--from', pool.url, '--to', join(folder.path, 'copy.db')]
    expect((await runPlantstore(copy)).stderr).toContain(` ${CLIENTS * CREATES} plants `)
    await runPlantstore(['token', 'revoke', '1', '--database', pool.url])
    await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)
    expect(await codeOf(server, pair.token)).toBe(40102)
    expect(found).toEqual({ codes: [200], reads: 2 * CLIENTS * CREATES, stale: 0 })
    expect(noticed(server)).toBe(0)

    for (const name of ['src', 'package.json', 'tsconfig.json']) {
      cpSync(join(SOURCE, name), join(folder.path, name), { recursive: true })
    }
    symlinkSync(join(SOURCE, 'node_modules'), join(folder.path, 'node_modules'))
    const driver = join(folder.path, 'src/store/postgres/driver.ts')
    writeFileSync(driver, readFileSync(driver, 'utf8').replace(TO_PRIMARY, ''))
    const command = [process.execPath, join(folder.path, 'src/main.ts')]
    await using toStandby = await startPgpool([pair.primary, pair.standby], [0, 1])
    await using other = await serve(toStandby.url, QUIET, { command })
    await untilRefusing(other, await createTokenIn(pair.primary.url))
  },
)

testRounds(
  'a server whose reads a standby answers refuses them and all writes, until only the primary has answered for five seconds',
  { short: 1, long: 10, needs: [OWN_POSTGRES] },
  async () => {
    using pair = await startPair()
    const { primary, standby, token } = pair
    using proxy = startPostgresProxy(primary.url)
    await using server = await serve(proxy.by(primary.url), QUIET)
    const create = (id: number) => server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
    const list = () => server.request('GET', '/plants', { token })
    expect(await codeOfAnswer(create(1))).toBe(200)

    proxy.leadTo(standby.url)
    await untilRefusing(server, token)
    const refused = await create(2)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await refused.json()).toEqual({
      error: 50302,
      message: 'The store has failed, nothing was and nothing will be stored: try again later.',
    })
    const others = [
      list(),
      server.request('GET', '/plants/1', { token }),
      server.request('DELETE', '/plants/1', { token }),
    ]
    expect(await Promise.all(others.map(codeOfAnswer))).toEqual([50302, 50302, 50302])

    const rename = (from: string, to: string) =>
      runScript(primary.url, `alter table plantstore.${from} rename to ${to}`)
    const failed = () =>
      readFileSync(join(primary.data, 'log'), 'latin1').split('plantstore.counters" does not').length - 1
    await rename('counters', 'elsewhere')
    proxy.leadTo(primary.url)
    await until('some of the looks have failed', (see) => see(failed()) >= FAILED_LOOKS)
    await rename('elsewhere', 'counters')
    const ledMs = performance.now()
    await until(
      'the server is ready',
      async (see) => see(await answerOf(server.request('GET', '/readyz'))).status === 200,
    )
    expect(performance.now() - ledMs).toBeGreaterThan(PRIMARY_MIN_MS)
    expect(await (await list()).json()).toEqual([{ name: 'Fern' }])
    expect(noticed(server)).toBe(1)

    // A primary that refuses writes is no standby.
    await runScript(primary.url, 'alter system set default_transaction_read_only = on')
    await runScript(primary.url, 'select pg_reload_conf()')
    await until('writes are refused', async (see) => see(await codeOfAnswer(create(3))) === 50301)
    await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)
    expect([await codeOf(server, token), noticed(server)]).toEqual([200, 1])
  },
)
