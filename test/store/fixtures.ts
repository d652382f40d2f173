import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { type NewPlant, valuesOf } from '../../src/domain/plant.ts'
import type { NewToken, Store } from '../../src/domain/store.ts'
import type { Token, UserId } from '../../src/domain/token.ts'
import { kindOf } from '../../src/error.ts'

/** A time at which things are created. */
export const CREATED_AT_MS = 1_700_000_000_000

/** The values of a plant with a name alone. */
export const FERN = valuesOf({ name: 'Fern' })

/** More than any test stores. */
const ALL = 1_000_000

/** Identifiers in ascending order: both ends, some that text would sort otherwise, and two that a double takes for one. */
export const IDS = [INT64_MIN, -10n, -9n, 0n, 9n, 10n, 9007199254740992n, 9007199254740993n, INT64_MAX]

/** A write token that nobody has yet. */
export const newToken = (userName: string, other: Partial<NewToken> = {}): NewToken => ({
  userName,
  hash: crypto.getRandomValues(new Uint8Array(32)),
  scope: 'write',
  label: undefined,
  createdAtMs: CREATED_AT_MS,
  expiresAtMs: undefined,
  ...other,
})

/** Creates a token and reads it as it is remembered. */
export async function createToken(store: Store, userName: string, other: Partial<NewToken> = {}) {
  const { hash } = newToken(userName, other)
  await store.createTokens([newToken(userName, { ...other, hash })])
  return { hash, token: await findToken(store, hash) }
}

/** A token that is there. */
export async function findToken(store: Store, hash: Uint8Array): Promise<Token> {
  const token = await store.findToken(hash)
  if (token === undefined) throw new Error('the token is gone')
  return token
}

/** Creates a user, with one token. */
export async function createUser(store: Store, name: string): Promise<UserId> {
  const { token } = await createToken(store, name)
  return token.userId
}

/** All plants of a user, as they were created: pages can end early, where plants are large. */
export async function listAll(store: Store, user: UserId): Promise<readonly NewPlant[]> {
  const all: NewPlant[] = []
  for (;;) {
    const { plants, isLast } = await store.listPlants(user, { after: all.at(-1)?.id, limit: ALL })
    all.push(...plants.map(({ id, plant }) => ({ id, ...plant })))
    if (isLast) return all
  }
}

/** The identifiers of all plants of a user. */
export async function listIds(store: Store, user: UserId): Promise<bigint[]> {
  return (await listAll(store, user)).map(({ id }) => id)
}

/** Closes a store before its test ends; the support, which closes it at the end, finds nothing left to do. */
export async function closeNow(store: Store): Promise<void> {
  await store.close()
  store.close = async () => {}
}

/** The outcome of each write: `done`, or the kind of the error, or a bug's text. */
export const outcomesOf = async (writes: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(writes)).map((result) =>
    result.status === 'fulfilled' ? 'done' : outcomeOf(result.reason),
  )

/** The kind of an error, or the text of a bug. */
export const outcomeOf = (reason: unknown): string => kindOf(reason) ?? String(reason)

/** All that an error says. */
type Rejection = Readonly<Record<string, unknown>>

/**
 * The reason with which a promise rejects, as an object; fails if it resolves. For answers of a thread: Bun's `rejects` runs the
 * event loop inside itself, where messages of threads do not wake it (https://github.com/oven-sh/bun/issues/37189).
 */
export const rejectionOf = (promise: Promise<unknown>): Promise<Rejection> =>
  promise.then((value) => {
    throw new Error(`it resolved to ${Bun.inspect(value)}`)
  }, asObject)

/** Of an error as it is, Bun prints the message alone where another one was expected. */
export const asObject = (reason: unknown): Rejection =>
  reason instanceof Error ? { ...reason, message: reason.message, cause: reason.cause } : { reason }
