import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import { isOptional, NEW_PLANT_FIELDS, type NewPlant, PLANT_FIELDS } from '../../../src/domain/plant.ts'
import { LIMIT_MAX } from '../../../src/domain/store.ts'
import type { Scope } from '../../../src/domain/token.ts'

/** Few ids, so that they meet again: in an order in which they are not listed, neither as numbers nor as text. */
const IDS = [10n, 9n, -1n, 0n, INT64_MAX, INT64_MIN, 9007199254740993n, 9007199254740992n, -10n, 1n]
/** What the names of users end in. Their order as bytes is not that of a dictionary. The first one has the most to do. */
export const USERS = ['c-1', 'a', 'B', 'c_1']
export const HOUR_MS = 3_600_000
const STEPS_MAX = 25

/** UTF-16 units of a long text. Two such texts are within the default limit of bodies. */
const LONG_UNITS = 4000

const codePoints = (maxLength: number) =>
  fc.string({ unit: 'binary', maxLength }).map((text) => text.replaceAll('\0', '\u{10ffff}'))

/** Any text that a plant can have: all of Unicode except U+0000, empty and long. */
const anyText: fc.Arbitrary<string> = fc.oneof(
  codePoints(30),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom('', ' ', '\ufeff', '\u2028\u2029', '\u0001\u001f\u007f', '\ufffe\uffff', '\ud7ff\ue000'),
  fc.constantFrom('null', '5', '"', '\\', '\\u0000', '\\ud83c', '{"id":1}', '__proto__', '%00', '<script>'),
  codePoints(8).map((text) => text.repeat(text === '' ? 0 : LONG_UNITS / text.length)),
)

const anyId = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...IDS) },
  { weight: 1, arbitrary: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }) },
)
/** Any plant with one of these ids, with each optional field or without. */
const anyPlant = fc.record(
  { id: anyId, ...Object.fromEntries(PLANT_FIELDS.map((field) => [field, anyText])) },
  { requiredKeys: NEW_PLANT_FIELDS.filter((field) => !isOptional(field)) as ['id'] },
) as fc.Arbitrary<NewPlant>

/** The parameters of a list. */
export interface Asked {
  readonly limit?: number
  readonly after?: bigint
  readonly include?: 'id' | undefined
}

/** Few queries, so that their lists are cached and asked for again. */
const anyAsked: fc.Arbitrary<Asked> = fc.record(
  {
    limit: fc.constantFrom(0, 1, 2, 3, 3, LIMIT_MAX),
    after: fc.constantFrom(...IDS),
    include: fc.constant('id' as const),
  },
  { requiredKeys: [] },
)

/** A header that names the plant's own `ETag`, another one, or any, and whether it lets a plant that is there be changed. */
export interface Precondition {
  readonly header: 'if-match' | 'if-none-match'
  readonly value: (etag: string) => string
  readonly holds: boolean
}

const anyPrecondition: fc.Arbitrary<Precondition> = fc.constantFrom(
  ...[(etag: string) => etag, (etag: string) => `"x", ${etag}`, () => '*'].flatMap((value): Precondition[] => [
    { header: 'if-match', value, holds: true },
    { header: 'if-none-match', value, holds: false },
  ]),
  { header: 'if-match', value: (etag) => `W/${etag}`, holds: false },
  { header: 'if-none-match', value: (etag) => `W/${etag}`, holds: false },
  { header: 'if-match', value: () => '"x"', holds: false },
  { header: 'if-none-match', value: () => '"x"', holds: true },
)

const anyIndex = fc.nat(30)
const anyUser = fc.nat(9).map((index) => USERS[index] ?? 'c-1')
/** A time before or after the present one, by far. */
const anyTime = fc.constantFrom(-2 * HOUR_MS, -HOUR_MS, HOUR_MS, 2 * HOUR_MS)
const anyToken = fc.record({
  user: anyUser,
  scope: fc.constantFrom<Scope>('write', 'write', 'read'),
  label: fc.option(
    anyText.map((text) => text.slice(0, 20).toWellFormed()),
    { nil: undefined },
  ),
  expires: fc.option(anyTime, { nil: undefined, freq: 2 }),
})
/** Some new tokens, and maybe one that is stored already, for its own user or for another one. */
const anyTokens = fc.record(
  { tokens: fc.array(anyToken, { maxLength: 3 }), repeats: anyIndex, as: anyUser },
  { requiredKeys: ['tokens'] },
)

const step = <Kind extends string, T>(weight: number, kind: Kind, values: fc.Arbitrary<T>) => ({
  weight,
  arbitrary: values.map((value) => ({ kind, value })),
})

/** Most often of a plant of the user. */
const anyChange = { id: anyId, index: fc.nat(5), precondition: fc.option(anyPrecondition, { nil: undefined }) }

/** What one client, one administrator or a signal does next. */
const anyAction = fc.oneof(
  step(12, 'create', anyPlant),
  step(6, 'put', fc.record({ ...anyChange, plant: anyPlant.map(({ id: _, ...plant }) => plant) })),
  step(6, 'delete', fc.record(anyChange)),
  step(
    2,
    'follow',
    fc.record({ limit: fc.integer({ min: 1, max: 3 }), include: fc.constantFrom(undefined, 'id' as const) }),
  ),
  step(3, 'createTokens', anyTokens),
  step(2, 'rotate', fc.record({ index: anyIndex, at: anyTime, overlapMs: fc.constantFrom(0, HOUR_MS) })),
  step(2, 'revoke', fc.record({ index: anyIndex, at: anyTime })),
  step(1, 'revokeAll', fc.record({ user: anyUser, at: anyTime })),
  step(1, 'touch', fc.record({ indexes: fc.array(anyIndex, { maxLength: 3 }), at: anyTime, now: anyTime })),
  step(2, 'block', fc.record({ user: anyUser, at: anyTime, createsUser: fc.constantFrom(false, false, true) })),
  step(2, 'unblock', anyUser),
  step(1, 'deleteUser', anyUser),
  step(2, 'createFirst', fc.record({ user: anyUser, at: anyTime, plant: anyPlant })),
  step(1, 'remove', fc.record({ user: anyUser, id: anyId })),
  step(1, 'restart', fc.constant(undefined)),
)
export type Action = typeof anyAction extends fc.Arbitrary<infer T> ? T : never

/** Steps: an action with one of the tokens, here or in another process, and the list that each token is asked for next. */
export const anySteps = fc.array(
  fc.record({
    action: anyAction,
    by: anyIndex,
    isElsewhere: fc.nat(3).map((index) => index === 0),
    asked: anyAsked,
    page: fc.nat(3),
  }),
  { maxLength: STEPS_MAX, size: 'max' },
)
export type Step = typeof anySteps extends fc.Arbitrary<(infer T)[]> ? T : never
