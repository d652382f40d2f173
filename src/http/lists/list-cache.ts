// Tested in test/http/caches.test.ts.
import { LRUCache } from 'lru-cache'
import type { Version } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { answerTagged } from '../answers.ts'
import { bearerToken } from '../authentication.ts'
import type { AppOptions, ListCache, Services } from '../options.ts'
import type { Handler } from '../request-context.ts'
import type { CappedList } from './render-list.ts'

/** The operation that a cached list answers. */
export const LIST_PLANTS = 'listPlants'

/** The most memory that the cache may take, in bytes. It drops the lists of the user who was idle for the longest time. */
export const LIST_CACHE_MAX_BYTES = 24 * 1024 * 1024
/** The largest list that is cached, in bytes. */
export const CACHED_LIST_MAX_BYTES = 256 * 1024
/** How many lists of one user are cached. One more drops all others of that user. */
export const LISTS_PER_USER_MAX = 32
/** The measured size of a user's entry and of a list, without their texts. */
const USER_BYTES = 512
const LIST_BYTES = 512

interface CachedList extends CappedList {
  /** The version of the user's plants for which the list is right. */
  version: Version
  readonly bytes: number
}

export function createListCache({ store, statistics, threads }: AppOptions): ListCache {
  const users = new LRUCache<UserId, ReadonlyMap<string, CachedList>>({
    maxSize: Math.floor(LIST_CACHE_MAX_BYTES / threads),
    sizeCalculation: (lists) => lists.values().reduce((sum, { bytes }) => sum + bytes, USER_BYTES),
  })

  return {
    get(user, url) {
      const list = users.get(user)?.get(url)
      if (list === undefined) return undefined
      const version = store.plantsVersion(user)
      if (list.version !== version) {
        // A create or put behind the last id changes no list that has a next page.
        if (list.next === undefined || !store.isUnchangedUpTo(user, list.version, list.next)) return undefined
        // It is unknown during a commit.
        if (version !== undefined) list.version = version
      }
      statistics?.lookUp('lists', 'hits')
      return list
    },

    set(user, url, version, list) {
      statistics?.lookUp('lists', 'misses')
      if (version === undefined || typeof list.body !== 'string') return
      const bytes = textBytes(list.body) + url.length + LIST_BYTES
      if (bytes > CACHED_LIST_MAX_BYTES) return
      const others = new Map(users.peek(user))
      others.delete(url)
      if (others.size >= LISTS_PER_USER_MAX) others.clear()
      users.set(user, others.set(url, { ...list, version, bytes }))
    },
  }
}

/**
 * Answers cached lists, and passes all other requests to `answer`. A URL is a key of the cache only after the route of lists
 * has answered it, so nothing else is at it for GET and HEAD. As an `onRequest` hook of Elysia this took 15 % more CPU time
 * for each list.
 */
export const answerCachedLists =
  ({ tokens, lists, countRequest }: Services, answer: Handler): Handler =>
  (request, context) => {
    const { method, headers, url } = request
    if (method !== 'GET' && method !== 'HEAD') return answer(request, context)
    const caller = tokens.get(bearerToken(headers.get('authorization')))
    context.caller = caller
    const list = caller && lists.get(caller.userId, url)
    if (caller === undefined || list === undefined) return answer(request, context)
    context.operation = LIST_PLANTS
    if (countRequest === undefined) return answerTagged(request, list)
    return countRequest(caller).then(() => answerTagged(request, list))
  }

/** The memory that the runtime takes for a text: one byte a character, or two if one of them is outside of Latin-1. */
const textBytes = (text: string): number => (/[\u0100-\uffff]/.test(text) ? 2 : 1) * text.length
