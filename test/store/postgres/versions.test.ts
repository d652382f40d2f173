import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { watchTokens } from '../../../src/store/postgres/versions.ts'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../../support/properties.ts'

describe('the version of tokens on PostgreSQL', () => {
  test('is unknown before its stamp is older than TOKEN_CHANGES_SEEN_WITHIN_MS', async () => {
    let nowMs = 0
    const answer = Promise.withResolvers<bigint>()
    const answers = [answer.promise, new Promise<bigint>(() => {})]
    const versions = watchTokens(
      () => answers.shift() ?? Promise.reject(new Error('it was asked too often')),
      () => nowMs,
    )
    const renewed = versions.renew()
    // The age counts from the start of the read.
    nowMs = TOKEN_CHANGES_SEEN_WITHIN_MS / 2
    answer.resolve(7n)
    await renewed

    expect(TOKEN_CHANGES_SEEN_WITHIN_MS).toBe(1000)
    expect(versions.tokens()).toBe(1)
    nowMs = TOKEN_CHANGES_SEEN_WITHIN_MS - 1
    expect(versions.tokens()).toBeUndefined()
  })

  test(
    'changes with every answered change of this process, and in time after a change of another process, in any order of events',
    async () => {
      let kept = 0
      let forgotten = 0
      await expectProperty('versions of tokens', fc.array(STEP, { minLength: 300, maxLength: 300 }), async (steps) => {
        const world = makeWorld()
        for (const step of steps) await world.take(step)
        kept += world.counts.kept
        forgotten += world.counts.forgotten
      })
      expect([kept > 0, forgotten > 0]).toEqual([true, true])
    },
    PROPERTY_TIMEOUT_MS,
  )
})

/** A change of this process is in the database first, and answered later. */
const EVENTS = [
  'changedHere',
  'answeredHere',
  'changedElsewhere',
  'databaseReads',
  'databaseAnswers',
  'databaseFails',
] as const
const STEP = fc.oneof(
  { weight: 3, arbitrary: fc.constant('request' as const) },
  { weight: 3, arbitrary: fc.constantFrom(...EVENTS) },
  { weight: 1, arbitrary: fc.constantFrom(1, 50, 299, 450) },
)
/** An event, or milliseconds that pass. */
type Step = (typeof EVENTS)[number] | 'request' | number

interface Change {
  readonly atMs: number
  /** Whether a change of this process was answered. */
  isAnswered: boolean
  readonly isHere: boolean
}

/** A model of a database that two processes change. One of them caches a read with the version from before the read. */
function makeWorld() {
  let nowMs = 0
  const changes: Change[] = []
  /** How many changes each cached read shows, by its version. */
  const reads = new Map<number, number>()
  const counts = { kept: 0, forgotten: 0 }
  let question: { readonly answer: PromiseWithResolvers<bigint>; stamp: bigint | undefined } | undefined
  const stamp = () => BigInt(changes.length)
  const versions = watchTokens(
    () => {
      question = { answer: Promise.withResolvers(), stamp: undefined }
      return question.answer.promise
    },
    () => nowMs,
  )
  const settle = async (how: (asked: NonNullable<typeof question>) => void) => {
    if (question === undefined) return
    const renewed = versions.renew()
    how(question)
    question = undefined
    await renewed
  }
  const change = (isHere: boolean) => changes.push({ atMs: nowMs, isAnswered: false, isHere })
  const events: Readonly<Record<Exclude<Step, number>, () => unknown>> = {
    changedHere: () => change(true),
    answeredHere() {
      for (const each of changes) each.isAnswered ||= each.isHere
      versions.changed()
    },
    changedElsewhere: () => change(false),
    databaseReads() {
      if (question !== undefined) question.stamp ??= stamp()
    },
    databaseAnswers: () => settle(({ answer, stamp: read }) => answer.resolve(read ?? stamp())),
    databaseFails: () => settle(({ answer }) => answer.reject(new Error('the connection was lost'))),
    request() {
      const version = versions.tokens()
      if (version === undefined) return
      const seen = reads.get(version)
      if (seen === undefined) {
        reads.set(version, changes.length)
        if (reads.size > 1) counts.forgotten++
        return
      }
      counts.kept++
      const mustShow = ({ atMs, isAnswered }: Change) => isAnswered || nowMs - atMs >= TOKEN_CHANGES_SEEN_WITHIN_MS
      expect(changes.slice(seen).filter(mustShow)).toEqual([])
    },
  }
  return {
    counts,
    async take(step: Step) {
      if (typeof step === 'number') nowMs += step
      else await events[step]()
    },
  }
}
