import type { Token } from '../../domain/token.ts'
import type { Limits } from '../access/limits.ts'
import type { TokenCache } from '../access/token-cache.ts'
import { contextOf } from '../context.ts'
import type { RequestStatistics } from '../statistics.ts'
import { answerList, type CappedList } from './capped-list.ts'
import type { ListCache } from './list-cache.ts'

interface CacheOptions {
  readonly tokens: TokenCache
  readonly lists: ListCache
  readonly limits: Limits
  readonly statistics: Pick<RequestStatistics, 'hit'> | undefined
}

/**
 * Answers a cached list before Elysia looks for a route, in a third less time. A URL is a key of the cache only after the
 * route of lists has answered it, so nothing else is at it for GET and HEAD.
 */
export const cachedLists = ({ tokens, lists, limits, statistics }: CacheOptions) => {
  const admitted = async (request: Request, caller: Token, list: CappedList) => {
    await limits.admit?.(caller, request)
    limits.semaphore?.requirePlace(request)
    return answerList(list, request)
  }
  // Elysia would await a hook in whose source a `return` calls a function, and make every request asynchronous.
  return ({ request }: { readonly request: Request }): Response | Promise<Response> | undefined => {
    const { method } = request
    if (method !== 'GET' && method !== 'HEAD') return undefined
    const caller = tokens.get(request.headers.get('authorization'))
    const list = caller && lists.get(caller.userId, request.url)
    if (caller === undefined || list === undefined) return undefined
    statistics?.hit('callers')
    statistics?.hit('lists')
    contextOf(request).caller = caller
    const response = limits.admit === undefined ? answerList(list, request) : admitted(request, caller, list)
    return response
  }
}
