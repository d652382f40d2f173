/**
 * `bun test/bench/jwt.ts`: prints what each attack of test/http/support/jwt-attacks.ts costs a server in CPU time, beside JWTs that
 * are right. `bun test/bench/jwt.ts dist/plantstore` measures an executable: cached lists with a JWT of 1 kB and with a token
 * of our own, and what 1,000 invalid signatures a second leave to others. It needs two idle cores, `wrk` and `taskset`.
 */
import { resolve } from 'node:path'
import { createApp } from '../../src/http/app.ts'
import { identityProvider } from '../../src/http/jwt/provider.ts'
import { attacksOn, odditiesOf, openArena } from '../http/support/jwt-attacks.ts'
import { openDatabase } from '../http/support/transports.ts'
import { appOptions } from '../support/app.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { moveToLoadCore } from '../support/process.ts'
import { createToken } from '../support/tokens.ts'
import { makeDatabase } from './databases.ts'
import { listLoad, measureRate } from './load/wrk.ts'
import { inWorkspace } from './run.ts'
import { startPlantstore } from './servers.ts'
import { median } from './statistics.ts'
import type { Workspace } from './workspace.ts'

const REQUESTS = 400
const [ROUNDS, SECONDS] = [7, 3]
const FLOOD = { perSecond: 1000, connections: 8 }

/** The CPU time of all threads of this process for a request, in microseconds. */
async function costOf(ask: () => Promise<unknown>): Promise<number> {
  for (let warm = 0; warm < REQUESTS / 4; warm++) await ask()
  const before = process.cpuUsage()
  for (let request = 0; request < REQUESTS; request++) await ask()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / REQUESTS
}

async function printCosts(): Promise<void> {
  const arena = await openArena()
  await using opened = await openDatabase()
  const { text: own } = await createToken(opened.store)
  const options = appOptions({ store: opened.store })
  const provider = identityProvider({ issuer: arena.issuer.issuer, audience: AUDIENCE }, options)
  const app = createApp({ ...options, provider })
  const statusOf = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    return (await app(new Request('http://localhost/plants?limit=1', { headers }))).status
  }
  const show = async (section: string, what: string, token: string, ask = (): Promise<unknown> => statusOf(token)) => {
    const status = await statusOf(token)
    console.log(`| ${section} | ${what.replaceAll('|', '\\|')} | ${status} | ${(await costOf(ask)).toFixed(0)} |`)
  }
  console.log('| RFC | what | status | µs of CPU |\n|---|---|---|---|')
  await show('', 'a token of our own, cached list', own)
  const token = await arena.issuer.token()
  await show('', 'ES256, verified each time, without HTTP', token, () => provider.verify(token))
  const all = [...odditiesOf(arena), ...attacksOn(arena)]
  for (const { section, what, make } of all) await show(section, what, await make())
  await arena.issuer[Symbol.asyncDispose]()
}

/** Sends tokens whose signatures are wrong, at a fixed rate over several connections. `stop` resolves to the refusals per second. */
function flood(url: string, tokens: readonly string[]) {
  let [sent, refused, isOver] = [0, 0, false]
  const startMs = performance.now()
  const client = async () => {
    for (; !isOver; sent++) {
      const waitMs = startMs + (sent * 1000) / FLOOD.perSecond - performance.now()
      const headers = { authorization: `Bearer ${tokens[sent % tokens.length]}` }
      if (waitMs > 0) await Bun.sleep(waitMs)
      const response = await fetch(`${url}/plants`, { headers })
      await response.text()
      if (response.status === 401) refused += 1
    }
  }
  const clients = Promise.all(Array.from({ length: FLOOD.connections }, client))
  return {
    async stop() {
      isOver = true
      await clients
      return (refused * 1000) / (performance.now() - startMs)
    },
  }
}

async function measure(executable: string, workspace: Workspace): Promise<void> {
  await using issuer = await startIssuer()
  const own = await makeDatabase(workspace.file('own.db'), { users: 1, plantsPerUser: 20 })
  const jwt = await issuer.token({ x: 'x'.repeat(520) })
  const flags = ['--jwt-issuer', issuer.issuer, '--jwt-audience', AUDIENCE]
  const server = await startPlantstore(workspace, own.path, { executable: resolve(executable), flags })
  const headers = { authorization: `Bearer ${jwt}`, 'content-type': 'application/json' }
  for (let id = 1; id <= 20; id++) {
    const body = JSON.stringify({ id, name: `Monstera deliciosa ${id}`, tag: 'evergreen' })
    await fetch(`${server.url}/plants`, { method: 'POST', headers, body })
  }
  const jwtFile = workspace.file('jwt.tokens')
  await Bun.write(jwtFile, `${jwt}\n`)
  const load = (tokensFile: string) => measureRate(workspace, server, listLoad(tokensFile), SECONDS)
  const invalid = await Promise.all(
    Array.from({ length: 200 }, async (_, index) =>
      (await issuer.token({ jti: `${index}` })).replace(/.{8}$/, 'AAAAAAAA'),
    ),
  )
  const [costs, shares, rates]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < ROUNDS; round++) {
    const [plain, signed] = [await load(own.tokensFile), await load(jwtFile)]
    const attack = flood(server.url, invalid)
    const attacked = await load(own.tokensFile)
    rates.push(await attack.stop())
    costs.push(signed.cpuUsPerRequest / plain.cpuUsPerRequest)
    shares.push(attacked.perSecond / plain.perSecond)
    const [a, b, c] = [plain, signed, attacked].map(
      (each) => `${each.perSecond.toFixed(0)}/s ${each.cpuUsPerRequest.toFixed(1)} µs`,
    )
    console.log(`own ${a}; JWT of ${jwt.length} bytes ${b}; own during the attack ${c}`)
  }
  console.log(`CPU of a cached list with a JWT, of one with our own token: ${median(costs).toFixed(2)} ×`)
  console.log(
    `throughput left by ${median(rates).toFixed(0)} invalid signatures a second: ${median(shares).toFixed(2)}`,
  )
}

const [executable] = process.argv.slice(2)
if (executable === undefined) await printCosts()
else {
  moveToLoadCore()
  await inWorkspace((workspace) => measure(executable, workspace))
}
process.exit()
