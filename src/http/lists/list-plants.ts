import type { Store } from '../../domain/store.ts'
import type { Token } from '../../domain/token.ts'
import type { Limits } from '../access/limits.ts'
import type { ListQuery } from '../query.ts'
import { answerList, cappedList } from './capped-list.ts'
import type { ListCache } from './list-cache.ts'
import { streamedList, streamedListHead } from './streamed-list.ts'

/** What lists need. */
export interface ListOptions {
  readonly store: Pick<Store, 'listPlants' | 'plantsVersion'>
  readonly lists: ListCache
  readonly limits: Limits
  /** The most plants in one answer; `undefined` means no limit. */
  readonly listMax: number | undefined
  /** Gives the client of a long answer more time for each part of it than the idle timeout. */
  readonly allowSlowReader: (request: Request) => void
  /** Called with an error that cut an answer after its status was sent. */
  readonly onCut: (request: Request, error: unknown) => void
}

interface ListRequest {
  readonly request: Request
  readonly caller: Token
  readonly query: ListQuery
}

/** Answers a list: whole if it has a limit, as a stream if it has none. */
export const listPlants = ({ store, lists, limits, listMax, allowSlowReader, onCut }: ListOptions) => {
  const maxLimit = listMax ?? Number.POSITIVE_INFINITY
  return async ({
    request,
    caller: { userId },
    query: { limit = maxLimit, after },
  }: ListRequest): Promise<Response> => {
    limits.semaphore?.requirePlace(request)
    const cap = Math.min(limit, maxLimit)
    if (Number.isFinite(cap)) {
      // Asked before the read: a change during the read makes the cached list outdated.
      const version = store.plantsVersion(userId)
      const list = await cappedList(store.listPlants, userId, { limit: cap, after })
      lists.set(userId, request.url, version, list)
      if (typeof list.body !== 'string') allowSlowReader(request)
      return answerList(list, request)
    }
    if (request.method === 'HEAD') return streamedListHead()
    return streamedList(store.listPlants, userId, after, {
      onMore: () => allowSlowReader(request),
      onCut: (error) => onCut(request, error),
    })
  }
}
