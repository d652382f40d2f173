import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { type TokenChanges, watchTokens } from '../../../src/store/postgres/token-watch.ts'
import { expectProperty } from '../../support/properties.ts'

describe('versions of tokens on PostgreSQL', () => {
  test('are unknown before their stamp is older than TOKEN_CHANGES_SEEN_WITHIN_MS', async () => {
    let nowMs = 0
    const answer = Promise.withResolvers<TokenChanges>()
    const answers = [answer.promise, new Promise<TokenChanges>(() => {})]
    const versions = watchTokens(
      () => answers.shift() ?? Promise.reject(new Error('it was asked too often')),
      () => nowMs,
    )
    const refreshed = versions.refresh()
    // The age counts from the start of the read.
    nowMs = TOKEN_CHANGES_SEEN_WITHIN_MS / 2
    answer.resolve({ stamp: 7n, changes: '' })
    await refreshed

    expect(TOKEN_CHANGES_SEEN_WITHIN_MS).toBe(1000)
    expect([versions.tokensVersion(), versions.hasSameTokens(1, 1)]).toEqual([1, true])
    nowMs = TOKEN_CHANGES_SEEN_WITHIN_MS - 1
    expect([versions.tokensVersion(), versions.hasSameTokens(1, 1)]).toEqual([undefined, false])
  })

  test('show every answered change of this process, and in time each change of another process, in any order of events', async () => {
    const counts = { kept: 0, keptBesideOthers: 0, forgotten: 0 }
    await expectProperty('versions of tokens', fc.array(STEP, { minLength: 300, maxLength: 300 }), async (steps) => {
      const world = makeWorld()
      for (const step of steps) await world.take(step)
      for (const [name, count] of Object.entries(world.counts)) counts[name as keyof typeof counts] += count
    })
    expect(Object.values(counts).every((count) => count > 0)).toBe(true)
  })
})

/** A change of this process is in the database first, and answered later. An older executable changes only the stamp. */
const EVENTS = [
  ...(['changedHere', 'answeredHere', 'changedElsewhere', 'changedByOlder'] as const),
  ...(['databaseReads', 'databaseAnswers', 'databaseFails'] as const),
]
const EVENT = fc.oneof(
  { weight: 4, arbitrary: fc.constant('request' as const) },
  { weight: 3, arbitrary: fc.constantFrom(...EVENTS) },
)
const USERS = 3
const STEP = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(EVENT, fc.integer({ min: 1, max: USERS })) },
  { weight: 1, arbitrary: fc.constantFrom(1, 50, 299, 450) },
)
/** An event that may concern a user, or milliseconds that pass. */
type Step = readonly [(typeof EVENTS)[number] | 'request', user: number] | number

/** As in the database, but short: it tells about five changes. */
const CHANGES_LENGTH = 18

interface Change {
  readonly user: number
  readonly atMs: number
  /** Whether a change of this process was answered. */
  isAnswered: boolean
  readonly isHere: boolean
}

/** A model of a database that several processes change. One of them caches reads with the version from before the read. */
function makeWorld() {
  let nowMs = 0
  const changes: Change[] = []
  /** The cached reads, with how many changes each shows. */
  const reads: { readonly user: number; readonly since: number; readonly shown: number }[] = []
  const counts = { kept: 0, keptBesideOthers: 0, forgotten: 0 }
  let stored: TokenChanges = { stamp: 0n, changes: '' }
  let question: { readonly answer: PromiseWithResolvers<TokenChanges>; found: TokenChanges | undefined } | undefined
  const versions = watchTokens(
    () => {
      question = { answer: Promise.withResolvers(), found: undefined }
      return question.answer.promise
    },
    () => nowMs,
  )
  const settle = async (how: (asked: NonNullable<typeof question>) => void) => {
    if (question === undefined) return
    const refreshed = versions.refresh()
    how(question)
    question = undefined
    await refreshed
  }
  const change = (user: number, isHere: boolean, isAnnounced = true) => {
    const { stamp: before, changes: told } = stored
    const stamp = BigInt(changes.push({ user, atMs: nowMs, isAnswered: false, isHere }))
    const rest = told.startsWith(`${before} `) ? told.slice(0, CHANGES_LENGTH) : ''
    stored = { stamp, changes: isAnnounced ? `${stamp} ${user};${rest}` : told }
  }
  const events: Readonly<Record<Exclude<Step, number>[0], (user: number) => unknown>> = {
    changedHere: (user) => change(user, true),
    answeredHere(user) {
      for (const each of changes) each.isAnswered ||= each.isHere && each.user === user
      versions.changed([user])
    },
    changedElsewhere: (user) => change(user, false),
    changedByOlder: (user) => change(user, false, false),
    databaseReads() {
      if (question !== undefined) question.found ??= stored
    },
    databaseAnswers: () => settle(({ answer, found }) => answer.resolve(found ?? stored)),
    databaseFails: () => settle(({ answer }) => answer.reject(new Error('the connection was lost'))),
    request(user) {
      const mustShow = ({ atMs, isAnswered }: Change) => isAnswered || nowMs - atMs >= TOKEN_CHANGES_SEEN_WITHIN_MS
      for (const read of reads.filter((each) => each.user === user)) {
        const later = changes.slice(read.shown).filter(mustShow)
        const isKept = versions.hasSameTokens(user, read.since)
        counts[isKept ? 'kept' : 'forgotten']++
        if (!isKept) continue
        expect(later.filter((each) => each.user === user)).toEqual([])
        if (later.length > 0) counts.keptBesideOthers++
      }
      const since = versions.tokensVersion()
      if (since !== undefined) reads.push({ user, since, shown: changes.length })
    },
  }
  return {
    counts,
    async take(step: Step) {
      if (typeof step === 'number') nowMs += step
      else await events[step[0]](step[1])
    },
  }
}
