import { nextTurn } from '../../domain/next-turn.ts'
import type { Store, StoredPlant } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { JSON_TYPE, json } from '../answers.ts'
import { PAGE_PLANTS, renderPlants } from './pages.ts'

/** Called by the server while a client reads a streamed list. */
interface StreamObserver {
  /** Called before each page but the first. */
  onMore(): void
  /** Called with an error that ends the list too early. */
  onCut(error: unknown): void
}

/**
 * Streams the whole list, a page at a time and only as fast as the client reads: memory does not grow with the list. `ended`
 * resolves at the end of the answer, also if the client goes away.
 */
export async function streamedList(
  store: Pick<Store, 'listPlants'>,
  user: UserId,
  after: bigint | undefined,
  { onMore, onCut }: StreamObserver,
): Promise<{ readonly response: Response; readonly ended: Promise<void> }> {
  const pages = readPages(store, user, after)
  // The server reads the first page before it sends the status: if the store fails at once, the client gets an error.
  let page = await pages.next()
  let opening = '['
  const ended = Promise.withResolvers<void>()
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
          controller.enqueue(opening + renderPlants(page.value))
          opening = ','
          page = await pages.next()
          if (page.done) opening = ''
          else onMore()
        } catch (error) {
          onCut(error)
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
  return { response: json(stream), ended: ended.promise }
}

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
