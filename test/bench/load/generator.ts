/**
 * Sends requests at fixed times, without waiting for earlier answers, and measures latency from those times. Usage:
 * `bun generator.ts PLAN`, where PLAN is a `Plan` in JSON. Prints a `StreamResult` for each schedule as JSON.
 */
import { formatRequest, openConnections, sendRequests } from '../../support/paced-requests.ts'
import { randomNumbers } from '../../support/random.ts'
import type { Plan, Schedule, StreamResult } from './open-loop.ts'

const SEED = 42
const WARM_UP_SECONDS = 1

const { port, seconds, schedules }: Plan = JSON.parse(process.argv[2] ?? '')
const streams = await Promise.all(schedules.map(openStream))
await Promise.all(streams.map((send) => send(WARM_UP_SECONDS)))
console.log(JSON.stringify(await Promise.all(streams.map((send) => send(seconds)))))
process.exit()

/** Opens the connections of a schedule. Returns the function that sends its requests for some time. */
async function openStream({ name, kind, perSecond, connections: count, firstId, tokensFile }: Schedule) {
  const tokens = (await Bun.file(tokensFile).text()).trim().split('\n')
  const lists = tokens.map((token) => formatRequest('GET', '/plants?limit=20', token))
  const random = randomNumbers(SEED)
  const connections = await openConnections(port, count)
  let id = firstId
  const create = (token = '') => {
    id += 1
    return formatRequest('POST', '/plants', token, { id, name: `Monstera deliciosa ${id}`, tag: 'evergreen' })
  }
  const next = () => {
    const user = random(tokens.length)
    return { request: kind === 'list' ? (lists[user] ?? '') : create(tokens[user]) }
  }
  return async (duration: number): Promise<StreamResult> => {
    const result = await sendRequests({ connections, seconds: duration, next, perSecond, waits: true })
    if (result.failed(200) > 0) throw new Error(`${result.failed(200)} requests of ${name} met errors`)
    return {
      name,
      intendedPerSecond: perSecond,
      sentPerSecond: result.sentPerSecond,
      p50Ms: result.latencyMs(200, 0.5),
      p99Ms: result.latencyMs(200, 0.99),
      maxMs: result.latencyMs(200, 1),
      lagP99Ms: result.lagMs(0.99),
    }
  }
}
