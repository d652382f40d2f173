import { expect } from 'bun:test'
import { type Plant, toPlant } from '../../../src/domain/plant.ts'
import type { NewToken } from '../../../src/domain/store.ts'
import type { Token, User, UserId } from '../../../src/domain/token.ts'
import type { Asked, Precondition } from './model-steps.ts'

/** A user whom the model knows. */
interface KnownUser extends Pick<User, 'createdAtMs'> {
  readonly plants: Map<bigint, Plant>
  blockedAtMs: number | undefined
  /** What the store gave, as soon as it is known. */
  id?: UserId
}

/** A token whom the model knows, by its text. */
export type KnownToken = { -readonly [Key in keyof Omit<Token, 'userId' | 'userBlockedAtMs'>]: Token[Key] } & {
  readonly text: string
  readonly hash: Uint8Array
}

/** An answer as far as the model knows it: the text of a body is exact, and an error is its code. */
export interface Expected {
  readonly status: number
  readonly body: string | number
  readonly link: string | null
}

/** What a method of the store resolves to, or the kind of the error that it rejects with. */
type Outcome = { readonly value: unknown } | { readonly kind: string }

const NOT_FOUND = { kind: 'user_not_found' }

/** A model of the service: its users, their tokens and plants, and what it answers to requests and to administrators. */
export function createModel(quotaPlants: number) {
  const users = new Map<string, KnownUser>()
  const tokens: KnownToken[] = []

  /** The plants that a token gives access to, or the answer to a request with it. */
  const accessOf = (token: KnownToken, needs: Token['scope']) => {
    const { scope, userName, revokedAtMs, expiresAtMs = Number.POSITIVE_INFINITY } = token
    const user = tokens.includes(token) ? users.get(userName) : undefined
    const hasEnded = revokedAtMs !== undefined || expiresAtMs <= Date.now()
    if (user === undefined || user.blockedAtMs !== undefined || hasEnded) return refusal(40102)
    return needs === 'write' && scope === 'read' ? refusal(40301) : user.plants
  }
  const insert = ({ hash, ...token }: NewToken & { readonly text: string }, id: number) => {
    const isNew = !users.has(token.userName)
    users.getOrInsertComputed(token.userName, () => newUser(token.createdAtMs))
    const others = { revokedAtMs: undefined, lastUsedAtMs: undefined, replacedBy: undefined }
    tokens.push({ ...token, hash, id, ...others })
    return isNew
  }
  const store = (plants: Map<bigint, Plant>, id: bigint, plant: Plant, hasQuota = true): string => {
    if (plants.has(id)) return 'plant_exists'
    if (hasQuota && plants.size >= quotaPlants) return 'quota_exceeded'
    plants.set(id, toPlant(plant))
    return 'done'
  }

  return {
    users,
    tokens,

    create(token: KnownToken, id: bigint, plant: Plant): Expected {
      const plants = accessOf(token, 'write')
      if ('status' in plants) return plants
      const outcome = store(plants, id, plant)
      if (outcome === 'done') return success(JSON.stringify(toPlant(plant)))
      return refusal(outcome === 'plant_exists' ? 40901 : 40302)
    },
    put(token: KnownToken, id: bigint, plant: Plant, precondition?: Precondition): Expected {
      const plants = accessOf(token, 'write')
      if ('status' in plants) return plants
      const isThere = plants.has(id)
      const holds = isThere ? precondition?.holds : precondition?.header !== 'if-match'
      if (holds === false) return refusal(41201)
      if (!isThere && plants.size >= quotaPlants) return refusal(40302)
      plants.set(id, toPlant(plant))
      return success(JSON.stringify(toPlant(plant)), isThere ? 200 : 201)
    },
    get(token: KnownToken, id: bigint, include: Asked['include']): Expected {
      const plants = accessOf(token, 'read')
      if ('status' in plants) return plants
      const plant = plants.get(id)
      return plant === undefined ? refusal(40402) : success(jsonOf(id, plant, include))
    },
    delete(token: KnownToken, id: bigint, precondition?: Precondition): Expected {
      const plants = accessOf(token, 'write')
      if ('status' in plants) return plants
      if (!plants.has(id)) return refusal(40402)
      if (precondition?.holds === false) return refusal(41201)
      plants.delete(id)
      return success('', 204)
    },
    list(token: KnownToken, asked: Asked): Expected {
      const plants = accessOf(token, 'read')
      return 'status' in plants ? plants : listOf(plants, asked)
    },

    createTokens(wanted: readonly (NewToken & { readonly text: string })[], firstId: number): Outcome {
      const stored = wanted.map(({ hash }) => tokens.find((token) => Buffer.compare(token.hash, hash) === 0))
      const index = wanted.findIndex(({ userName, scope }, at) => {
        const same = stored[at]
        return same && (same.userName !== userName || same.scope !== scope || same.revokedAtMs !== undefined)
      })
      const id = stored[index]?.id
      if (id !== undefined) {
        const refused = { index, stored: expect.objectContaining({ id }) }
        return { value: { created: 0, firstId: expect.any(Number), newUsers: [], refused } }
      }
      const missing = wanted.filter((_, at) => stored[at] === undefined)
      const newUsers = missing.filter((token, at) => insert(token, firstId + at)).map(({ userName }) => userName)
      return { value: { created: missing.length, firstId: expect.any(Number), newUsers } }
    },
    rotate(token: KnownToken, next: NewToken & { readonly text: string }, overlapMs: number, id: number): Outcome {
      if (!tokens.includes(token)) return { kind: 'token_not_found' }
      const { revokedAtMs, replacedBy, expiresAtMs = Number.POSITIVE_INFINITY } = token
      const atMs = next.createdAtMs
      if (revokedAtMs !== undefined || replacedBy !== undefined || expiresAtMs <= atMs)
        return { kind: 'rotation_refused' }
      const oldEndsAtMs = Math.min(expiresAtMs, atMs + overlapMs)
      insert(next, id)
      token.replacedBy = id
      token[overlapMs === 0 ? 'revokedAtMs' : 'expiresAtMs'] = oldEndsAtMs
      return { value: { id, oldEndsAtMs } }
    },
    revoke(token: KnownToken, atMs: number): Outcome {
      if (!tokens.includes(token)) return { kind: 'token_not_found' }
      return { value: end([token], atMs) }
    },
    revokeAll(userName: string, atMs: number): Outcome {
      if (!users.has(userName)) return NOT_FOUND
      const own = tokens.filter((token) => token.userName === userName)
      return { value: end(own, atMs) }
    },
    touch(token: KnownToken, atMs: number, nowMs: number): void {
      const { lastUsedAtMs = -1 } = token
      if (lastUsedAtMs < atMs || lastUsedAtMs > nowMs) token.lastUsedAtMs = atMs
    },
    block(name: string, atMs: number | undefined, createsUser: boolean): Outcome {
      if (createsUser && !users.has(name)) {
        users.set(name, { ...newUser(atMs ?? 0), blockedAtMs: atMs })
        return { value: atMs !== undefined }
      }
      const user = users.get(name)
      if (user === undefined) return NOT_FOUND
      const changes = (user.blockedAtMs === undefined) !== (atMs === undefined)
      if (changes) user.blockedAtMs = atMs
      return { value: changes }
    },
    deleteUser(name: string): Outcome {
      const plants = users.get(name)?.plants.size
      if (plants === undefined) return NOT_FOUND
      const left = tokens.filter((token) => token.userName !== name)
      const deleted = tokens.length - left.length
      tokens.splice(0, tokens.length, ...left)
      users.delete(name)
      return { value: { plants, tokens: deleted } }
    },
    createFirst(name: string, createdAtMs: number, id: bigint, plant: Plant, hasQuota: boolean): Outcome {
      const user = users.get(name) ?? newUser(createdAtMs)
      if (user.blockedAtMs !== undefined) return { kind: 'token_invalid' }
      const outcome = store(user.plants, id, plant, hasQuota)
      if (outcome !== 'done') return { kind: outcome }
      users.set(name, user)
      return { value: undefined }
    },
    remove: (name: string, id: bigint): Outcome =>
      users.get(name)?.plants.delete(id) ? { value: undefined } : { kind: 'plant_not_found' },
  }
}

/** Revokes tokens, and returns how many were not revoked before. */
function end(selected: readonly KnownToken[], atMs: number): number {
  const active = selected.filter(({ revokedAtMs }) => revokedAtMs === undefined)
  for (const token of active) token.revokedAtMs = atMs
  return active.length
}

const newUser = (createdAtMs: number): KnownUser => ({ createdAtMs, blockedAtMs: undefined, plants: new Map() })

const jsonOf = (id: bigint, plant: Plant, include: Asked['include']): string =>
  JSON.stringify(plant).replace('{', include === undefined ? '{' : `{"id":${id},`)

/** The answer to a list: the plants in the order of their ids, and the `Link` if more follow. */
function listOf(
  plants: ReadonlyMap<bigint, Plant>,
  { limit = Number.POSITIVE_INFINITY, after, include }: Asked,
): Expected {
  const following = [...plants].filter(([id]) => after === undefined || id > after).sort(([a], [b]) => (a < b ? -1 : 1))
  const page = following.slice(0, Math.min(limit, following.length))
  const body = `[${page.map(([id, plant]) => jsonOf(id, plant, include)).join()}]`
  if (page.length === 0 || page.length === following.length) return success(body)
  const query = `limit=${limit}&after=${page.at(-1)?.[0]}${include ? '&include=id' : ''}`
  return { ...success(body), link: `<?${query}>; rel="next"` }
}

const success = (body: string, status = 200): Expected => ({ status, body, link: null })
const refusal = (code: number): Expected => ({ status: Math.floor(code / 100), body: code, link: null })

/** What a call of a store resolves to, or the kind of its error. */
export const outcomeOf = (called: Promise<unknown>): Promise<Outcome> =>
  called.then(
    (value) => ({ value }),
    ({ kind }) => ({ kind }),
  )

/** What `listTokens` and `listUsers` of the store should tell. A server may record uses of tokens by itself. */
export const factsOf = ({ users, tokens }: Model, hasUses: boolean) => ({
  tokens: tokens.map(({ text: _, hash: __, lastUsedAtMs, ...token }) => ({
    ...token,
    ...(hasUses && { lastUsedAtMs }),
    userId: users.get(token.userName)?.id,
    userBlockedAtMs: users.get(token.userName)?.blockedAtMs,
  })),
  users: [...users]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { plants, createdAtMs, blockedAtMs }]) => ({
      ...{ name, createdAtMs, blockedAtMs },
      plants: plants.size,
      tokens: tokens.filter(({ userName }) => userName === name).length,
    })),
})

export type Model = ReturnType<typeof createModel>
