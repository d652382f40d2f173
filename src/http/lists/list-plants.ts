import type { Token } from '../../domain/token.ts'
import type { AppParts } from '../app.ts'
import { contextOf, logFault } from '../observe.ts'
import type { ListQuery } from '../query.ts'
import { SLOW_READER_S } from '../server.ts'
import { answerList, type CappedList, cappedList } from './capped-list.ts'
import { streamedList, streamedListHead } from './streamed-list.ts'

interface ListRequest {
  readonly request: Request
  readonly caller: Token
  readonly query: ListQuery
}

/** Answers a list: whole if it has a limit, as a stream if it has none. */
export const listPlants = ({ store, log, lists, limits, listMax = Number.POSITIVE_INFINITY }: AppParts) => {
  return async ({ request, caller: { userId }, query: { limit = listMax, after } }: ListRequest): Promise<Response> => {
    limits.requirePlace(request)
    const cap = Math.min(limit, listMax)
    if (Number.isFinite(cap)) {
      // Asked before the read: a change during the read makes the cached list outdated.
      const version = store.plantsVersion(userId)
      const list = await cappedList(store, userId, { limit: cap, after })
      lists.set(userId, request.url, version, list)
      if (typeof list.body !== 'string') allowSlowReader(request)
      return answerList(list, request)
    }
    if (request.method === 'HEAD') return streamedListHead()
    const context = contextOf(request)
    const { response, ended } = await streamedList(store, userId, after, {
      onMore: () => allowSlowReader(request),
      onCut: (error) => logFault(log, context, error),
    })
    context.streamEnd = ended
    return response
  }
}

/**
 * Gives the client of a long answer more time for each part of it than the idle timeout. The runtime sees progress only when
 * the kernel's send buffer of up to 4 MB has room again: at 16 KB/s after minutes.
 */
function allowSlowReader(request: Request): void {
  const { connection, received } = contextOf(request)
  connection?.timeout(received, SLOW_READER_S)
}

/**
 * Answers a cached list before Elysia looks for a route, in a third less time. A URL is a key of the cache only after the
 * route of lists has answered it, so nothing else is at it for GET and HEAD.
 */
export const answerCachedList = ({ tokens, lists, limits, statistics }: AppParts) => {
  const answerAdmitted = async (request: Request, caller: Token, list: CappedList) => {
    await limits.admit?.(caller, request)
    limits.requirePlace(request)
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
    const response = limits.admit === undefined ? answerList(list, request) : answerAdmitted(request, caller, list)
    return response
  }
}
