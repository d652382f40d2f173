/**
 * `bun test/bench/jwt.ts`: prints what each attack of test/http/support/jwt-attacks.ts costs a server in CPU time, beside JWTs that
 * are right. `bun test/bench/jwt.ts dist/plantstore` measures an executable: cached lists with a JWT of 1 kB and with a token
 * of our own, and what 1,000 invalid signatures a second leave to others. It needs two idle cores, `wrk` and `taskset`.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createApp } from '../../src/http/app.ts'
import { identityProvider } from '../../src/http/jwt/provider.ts'
import { attacksOn, odditiesOf, openArena } from '../http/support/jwt-attacks.ts'
import { openDatabase } from '../http/support/transports.ts'
import { appOptions } from '../support/app.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { runProgram } from '../support/program.ts'
import { createToken, createTokenIn } from '../support/tokens.ts'

const REQUESTS = 400
const [ROUNDS, SECONDS] = [7, 3]
const FLOOD = { perSecond: 1000, connections: 8 }

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

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
  const show = async (
    section: string,
    what: string,
    token: string,
    ask: () => Promise<unknown> = () => statusOf(token),
  ) => {
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

/** The CPU time of a process, in clock ticks of 10 ms. */
const ticksOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return Number(fields[11]) + Number(fields[12])
}

async function load(pid: number, url: string, token: string) {
  const before = ticksOf(pid)
  const wrk = ['wrk', '-t1', '-c32', `-d${SECONDS}s`, '-H', `Authorization: Bearer ${token}`, `${url}/plants?limit=20`]
  const { stdout } = await runProgram(['taskset', '-c', '1', ...wrk])
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout)
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1])
  return { perSecond: requests / SECONDS, cpuUs: ((ticksOf(pid) - before) * 10_000) / requests }
}

/** Sends tokens whose signatures are wrong, at a fixed rate over several connections, until it is disposed of. */
function flood(url: string, tokens: readonly string[]) {
  const child = Bun.spawn(['taskset', '-c', '1', process.execPath, import.meta.path, '--flood', url], {
    stdin: new Blob([tokens.join('\n')]),
    stdout: 'pipe',
  })
  return {
    async stop() {
      child.kill('SIGINT')
      return Number(await new Response(child.stdout).text())
    },
  }
}

async function runFlood(url: string): Promise<void> {
  const tokens = (await Bun.stdin.text()).split('\n')
  const statuses = new Map<number, number>()
  process.on('SIGINT', () => {
    console.log(statuses.get(401) ?? 0)
    process.exit()
  })
  let sent = 0
  const startMs = performance.now()
  const connection = async () => {
    for (;;) {
      const waitMs = startMs + (sent * 1000) / FLOOD.perSecond - performance.now()
      const token = tokens[sent++ % tokens.length]
      if (waitMs > 0) await Bun.sleep(waitMs)
      const response = await fetch(`${url}/plants`, { headers: { authorization: `Bearer ${token}` } })
      await response.text()
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: FLOOD.connections }, connection))
}

async function measure(executable: string): Promise<void> {
  await using issuer = await startIssuer()
  using folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const own = await createTokenIn(database)
  const flags = ['--jwt-issuer', issuer.issuer, '--jwt-audience', AUDIENCE, '--access-log', 'off']
  await using server = await serve(database, flags, { under: ['taskset', '-c', '0'], command: [executable] })
  const jwt = await issuer.token({ x: 'x'.repeat(520) })
  for (const token of [own, jwt]) {
    for (let id = 0; id < 20; id++) await server.request('POST', '/plants', { token, body: { id, name: `Fern ${id}` } })
  }
  const invalid = await Promise.all(
    Array.from({ length: 200 }, async (_, index) =>
      (await issuer.token({ jti: `${index}` })).replace(/.{8}$/, 'AAAAAAAA'),
    ),
  )
  const [ratios, shares, rates]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < ROUNDS; round++) {
    const [plain, signed] = [await load(server.pid, server.url, own), await load(server.pid, server.url, jwt)]
    const attack = flood(server.url, invalid)
    const startMs = performance.now()
    const attacked = await load(server.pid, server.url, own)
    rates.push((await attack.stop()) / ((performance.now() - startMs) / 1000))
    ratios.push(signed.cpuUs / plain.cpuUs)
    shares.push(attacked.perSecond / plain.perSecond)
    const [a, b, c] = [plain, signed, attacked].map(
      (each) => `${each.perSecond.toFixed(0)}/s ${each.cpuUs.toFixed(1)} µs`,
    )
    console.log(`own ${a}; JWT of ${jwt.length} bytes ${b}; own during the attack ${c}`)
  }
  console.log(`CPU of a cached list with a JWT, of one with our own token: ${median(ratios).toFixed(2)} ×`)
  console.log(
    `throughput left by ${median(rates).toFixed(0)} invalid signatures a second: ${median(shares).toFixed(2)}`,
  )
}

const { values, positionals } = parseArgs({ options: { flood: { type: 'string' } }, allowPositionals: true })
if (values.flood !== undefined) await runFlood(values.flood)
else if (positionals[0] === undefined) await printCosts()
else await measure(positionals[0])
process.exit()
