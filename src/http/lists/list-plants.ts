// Tested in test/http/list-streamed.test.ts.
import type { Caller } from '../../domain/token.ts'
import { AppError } from '../../error.ts'
import { answerTagged, SUCCESS } from '../answers.ts'
import { SLOW_READER_S } from '../connection.ts'
import { logFault } from '../log-and-metrics.ts'
import type { Services } from '../options.ts'
import type { ListQuery } from '../query.ts'
import { contextOf, type RequestContext } from '../request-context.ts'
import { cappedList, type ListPart, type ListRange, renderList } from './render-list.ts'

interface ListRequest {
  readonly request: Request
  readonly caller: Caller
  readonly query: ListQuery
}

/** Answers a list: whole if it has a limit, as a stream if it has none. */
export const listPlants = (services: Services) => {
  const { store, lists, listMax = Number.POSITIVE_INFINITY } = services
  return async ({ request, caller, query: { limit = listMax, after, include } }: ListRequest): Promise<Response> => {
    const range = { limit: Math.min(limit, listMax), after, include }
    if (!Number.isFinite(range.limit))
      return request.method === 'HEAD' ? streamedListHead() : streamedList(services, request, caller, range)
    // Asked before the read: a change during the read makes the cached list outdated.
    const version = store.plantsVersion(caller.userId)
    const list = await cappedList(store, caller.userId, range)
    lists.set(caller.userId, request.url, version, list)
    const response = answerTagged(request, list)
    if (typeof list.body !== 'string') {
      allowSlowReader(contextOf(request))
      // The response has its own copy. The garbage collector would free this one only after several more lists.
      list.body.transfer(0)
    }
    return response
  }
}

/**
 * Streams the whole list, a part at a time and only as fast as the client reads: memory does not grow with the list. Before each
 * further part it asks whether the token is still accepted. The log says why a list ended too early.
 */
async function streamedList(services: Services, request: Request, caller: Caller, all: ListRange) {
  const { store, log, statistics } = services
  const context = contextOf(request)
  const nextPart = renderList(store, caller.userId, all, Number.POSITIVE_INFINITY)
  // The server reads the first part before it sends the status: if the store fails at once, the client gets an error.
  let first: ListPart | undefined = await nextPart()
  const ended = Promise.withResolvers<number>()
  context.streamEnd = ended.promise
  let bodyBytes = 0
  let isCut = false
  const stream = new ReadableStream<string>(
    {
      async pull(controller) {
        try {
          if (first === undefined) await requireSameCaller(services, request, caller)
          const { text, bytes, isLast } = first ?? (await nextPart())
          first = undefined
          // The client has gone meanwhile.
          if (isCut) return
          controller.enqueue(text)
          bodyBytes += bytes
          if (statistics !== undefined) statistics.bodyBytes += bytes
          if (!isLast) return allowSlowReader(context)
          controller.close()
        } catch (error) {
          logFault(log, context, error)
          // The connection ends without the last chunk, so that no client takes half a list for a whole one. With the error as
          // its argument, the runtime would print it.
          controller.error()
        }
        ended.resolve(bodyBytes)
      },
      cancel() {
        isCut = true
        ended.resolve(bodyBytes)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(stream, SUCCESS)
}

/** Rejects with `token_invalid` if the token has ended or has another user. A store that cannot tell ends no list. */
async function requireSameCaller({ tokens, log }: Services, request: Request, caller: Caller): Promise<void> {
  try {
    await tokens.readTokenAgain(request, caller)
  } catch (error) {
    if (error instanceof AppError && error.kind !== 'token_invalid') return
    const { requestId } = contextOf(request)
    const facts = { requestId, user: caller.userName, tokenId: caller.id }
    log.warn(facts, 'a list was cut: its token is no longer accepted')
    throw error
  }
}

/**
 * Gives the client of a long answer more time for each part of it than the idle timeout. The runtime sees progress only when
 * the kernel's send buffer of up to 4 MB has room again: at 16 KB/s after minutes.
 */
const allowSlowReader = ({ connection, request }: RequestContext): void => connection?.timeout(request, SLOW_READER_S)

/** The answer to `HEAD` for a list without a limit: the head of `streamedList`. Nobody reads this stream. */
const streamedListHead = (): Response => new Response(new ReadableStream({}, { highWaterMark: 0 }), SUCCESS)
