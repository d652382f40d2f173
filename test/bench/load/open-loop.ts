import { join } from 'node:path'
import { LOAD_CORE } from '../../support/process.ts'
import type { Bench } from '../rows/row.ts'
import type { Server } from '../servers.ts'
import { IDS_PER_RUN } from './wrk.ts'

/** A schedule of requests: one every `1 / perSecond` seconds, without waiting for earlier answers. */
export interface Schedule {
  readonly name: string
  readonly kind: 'list' | 'create'
  readonly perSecond: number
  readonly connections: number
  /** The id of the first create. */
  readonly firstId: number
  /** A file with one token on each line. Requests use the tokens in random order. */
  readonly tokensFile: string
}

/** The argument of the generator. */
export interface Plan {
  readonly port: number
  readonly seconds: number
  readonly schedules: readonly Schedule[]
}

/** The result of a schedule after its warm-up. A latency starts at the intended time of the request. */
export interface StreamResult {
  readonly name: string
  readonly intendedPerSecond: number
  /** The rate of the sent requests. */
  readonly sentPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** The delay between the intended time of a request and the generator's turn, before a wait for a free connection. */
  readonly lagP99Ms: number
}

/** A run that sends a smaller share of the intended requests has not measured the intended load. */
const SENT_SHARE_MIN = 0.98
/** A generator that is later than this shared its core, and has measured its own delay. */
const LAG_P99_MAX_MS = 1
const ATTEMPTS = 3
const IDS_PER_ATTEMPT = Math.floor(IDS_PER_RUN / ATTEMPTS)

/**
 * Sends requests to a server at fixed times, after a second of warm-up. Returns the result of each schedule. If another program
 * delayed the generator, tells `say` and tries again. Rejects if an answer is not a success, or if the generator sent too few requests.
 */
export async function runOpenLoop(
  { workspace, say }: Pick<Bench, 'workspace' | 'say'>,
  { port }: Server,
  schedules: readonly Schedule[],
  seconds: number,
): Promise<readonly StreamResult[]> {
  const command = ['bun', join(import.meta.dir, 'generator.ts')]
  let fault: ReturnType<typeof faultOf>
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const attempted: Plan = { port, seconds, schedules: schedules.map((schedule) => inAttempt(schedule, attempt)) }
    const text = await workspace.run(LOAD_CORE, [...command, JSON.stringify(attempted)])
    const results: readonly StreamResult[] = JSON.parse(text)
    fault = results.map(faultOf).find((found) => found !== undefined)
    if (fault === undefined) return results
    if (!fault.isOwn) break
    say(`${fault.text}: again`)
  }
  throw new Error(fault?.text)
}

/** The schedule with the ids of one attempt. The attempts divide the ids of a run. */
const inAttempt = (schedule: Schedule, attempt: number): Schedule => ({
  ...schedule,
  firstId: schedule.firstId + (attempt - 1) * IDS_PER_ATTEMPT,
})

/** Why a result is invalid, and whether the generator itself was the cause. Returns `undefined` for a valid result. */
function faultOf({ name, intendedPerSecond, sentPerSecond, lagP99Ms }: StreamResult) {
  const isOwn = lagP99Ms > LAG_P99_MAX_MS
  if (!isOwn && sentPerSecond >= SENT_SHARE_MIN * intendedPerSecond) return undefined
  const rates = `${Math.round(sentPerSecond)} of ${Math.round(intendedPerSecond)} requests a second were sent`
  return { isOwn, text: `${name}: ${rates}, and the generator was late by ${lagP99Ms.toFixed(1)} ms (p99)` }
}

/** A latency with the rates and the lag that show whether it is valid. */
export const describeStream = ({ name, intendedPerSecond, sentPerSecond, ...ms }: StreamResult) =>
  `${name}: ${Math.round(sentPerSecond)} of ${Math.round(intendedPerSecond)} a second sent, p50 ${ms.p50Ms.toFixed(3)}, ` +
  `p99 ${ms.p99Ms.toFixed(3)}, max ${ms.maxMs.toFixed(3)} ms; the generator's own lag: p99 ${ms.lagP99Ms.toFixed(3)} ms`
