import { LRUCache } from 'lru-cache'
import type { Revision, Store } from '../domain/store.ts'
import type { Access, Caller } from './auth.ts'
import type { RequestContext } from './context.ts'
import { answerList, type CappedList } from './list.ts'

/** What all remembered lists may take, in bytes, and how large one of them may be. What was not asked for goes first. */
export const REMEMBERED_MAX_BYTES = 16 * 1024 * 1024
export const REMEMBERED_LIST_MAX_BYTES = 256 * 1024
/** What a list takes besides its text and its key, measured. */
const ENTRY_BYTES = 512

interface Remembered {
  readonly list: CappedList
  readonly caller: Caller
  /** Of the caller's plants, from before they were read. */
  readonly revision: Revision
}

/** Capped lists that were answered before. */
export type RememberedLists = ReturnType<typeof rememberLists>

/**
 * Answers who asks for a capped list once more, with the same credentials, as long as neither the caller's plants nor
 * anything about tokens has changed, by whomever: exactly what reading it anew would answer, without reading it.
 */
export function rememberLists({ plantsRevision }: Pick<Store, 'plantsRevision'>, { admits }: Pick<Access, 'admits'>) {
  const lists = new LRUCache<string, Remembered>({
    maxSize: REMEMBERED_MAX_BYTES,
    maxEntrySize: REMEMBERED_LIST_MAX_BYTES,
    sizeCalculation: ({ list }, key) => 2 * (list.body.length + key.length) + ENTRY_BYTES,
  })

  return {
    /** The answer, if it is one that was given before and is still true. */
    answer(request: Request, context: RequestContext): Response | undefined {
      if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
      const remembered = lists.get(keyOf(request))
      if (remembered === undefined) return undefined
      const { list, caller, revision } = remembered
      if (revision !== plantsRevision(caller.token.userId) || !admits(caller)) return undefined
      context.token = caller.token
      return answerList(list, request)
    },
    /** Remembers a list that was read for a caller whose plants had this revision before. */
    keep(request: Request, caller: Caller, revision: Revision | undefined, list: CappedList): void {
      if (revision !== undefined) lists.set(keyOf(request), { list, caller, revision })
    },
  }
}

/** All that makes a list the one that it is: who asks, and for what. */
const keyOf = ({ url, headers }: Request): string => `${headers.get('authorization')} ${url}`
