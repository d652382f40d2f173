import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Store, StoredPlant } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { JSON_TYPE, json } from '../answers.ts'
import { contextOf, logFault, type RequestContext } from '../observe.ts'
import type { AppParts } from '../parts.ts'
import { SLOW_READER_S } from '../server.ts'
import { type Include, PAGE_PLANTS, renderPlants } from './pages.ts'

/**
 * Streams the whole list, a page at a time and only as fast as the client reads: memory does not grow with the list. Logs an
 * error that ends the list too early.
 */
export async function streamedList(
  { store, log }: AppParts,
  request: Request,
  user: UserId,
  { after, include }: { readonly after: bigint | undefined; readonly include: Include },
) {
  const context = contextOf(request)
  const pages = readPages(store, user, after)
  // The server reads the first page before it sends the status: if the store fails at once, the client gets an error.
  let page = await pages.next()
  let opening = '['
  const ended = Promise.withResolvers<void>()
  context.streamEnd = ended.promise
  const stream = new ReadableStream<string>(
    {
      async pull(controller) {
        try {
          if (page.done) {
            controller.enqueue(`${opening}]`)
            controller.close()
            ended.resolve()
            return
          }
          controller.enqueue(opening + renderPlants(page.value, include))
          opening = ','
          page = await pages.next()
          if (page.done) opening = ''
          else allowSlowReader(context)
        } catch (error) {
          logFault(log, context, error)
          ended.resolve()
          // The connection ends without the last chunk, so that no client takes half a list for a whole one. With the error as
          // its argument, the runtime would print it.
          controller.error()
        }
      },
      async cancel() {
        ended.resolve()
        await pages.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
  return json(stream)
}

/**
 * Gives the client of a long answer more time for each part of it than the idle timeout. The runtime sees progress only when
 * the kernel's send buffer of up to 4 MB has room again: at 16 KB/s after minutes.
 */
export const allowSlowReader = ({ connection, received }: RequestContext): void =>
  connection?.timeout(received, SLOW_READER_S)

/** The answer to `HEAD` for a list without a limit: the head of `streamedList`. Nobody reads this stream. */
export const streamedListHead = (): Response =>
  new Response(new ReadableStream({}, { highWaterMark: 0 }), { headers: { 'content-type': JSON_TYPE } })

/** Pages of the user's plants, none of them empty. */
async function* readPages(
  { listPlants }: Pick<Store, 'listPlants'>,
  user: UserId,
  after: bigint | undefined,
): AsyncGenerator<readonly StoredPlant[], undefined> {
  for (let last = after; ; ) {
    const { plants, isLast } = await listPlants(user, { after: last, limit: PAGE_PLANTS })
    if (plants.length > 0) yield plants
    if (isLast) return
    last = plants.at(-1)?.id
    await nextTurn()
  }
}
