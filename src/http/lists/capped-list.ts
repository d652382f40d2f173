import { PAGE_TEXT_LENGTH, type Store } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import type { TaggedBody } from '../etag.ts'
import { type ListPart, type ListRange, renderList } from './render-list.ts'

/** The most bytes of a capped list's body, in UTF-8. A list of one plant may be larger. */
export const LIST_MAX_BYTES = 8 * 1024 * 1024

/** A list with a `limit`: whole, with an `ETag`, and with a `Link` if more plants follow. */
export interface CappedList extends TaggedBody {
  /** The id of the last plant in the list, if more follow. */
  readonly next: bigint | undefined
}

/**
 * Reads a list of at most `limit` plants and `LIST_MAX_BYTES`. A body longer than `PAGE_TEXT_LENGTH` is bytes. It is sent once, and
 * not cached. A buffer can be freed at once: strings of 8 MiB would wait for the garbage collector until they take 100 MiB.
 */
export async function cappedList(
  store: Pick<Store, 'listPlants'>,
  user: UserId,
  range: ListRange,
): Promise<CappedList> {
  const nextPart = renderList(store, user, range, LIST_MAX_BYTES)
  const hash = new Bun.SHA256()
  let text = ''
  let long: Bun.ArrayBufferSink | undefined
  let part: ListPart
  do {
    part = await nextPart()
    hash.update(part.text)
    text += part.text
    if (long !== undefined || text.length > PAGE_TEXT_LENGTH) {
      long ??= startBytes()
      long.write(text)
      text = ''
    }
  } while (!part.isLast)
  const { next } = part
  const include = range.include === undefined ? '' : `&include=${range.include}`
  const link = next === undefined ? '' : `<?limit=${range.limit}&after=${next}${include}>; rel="next"`
  // The same plants with and without others behind them are two answers.
  const etag = `"${hash.update(link).digest('base64url')}"`
  const body = bytesOf(long) ?? text
  return { body, bodyBytes: Buffer.byteLength(body), etag, link, next }
}

function startBytes(): Bun.ArrayBufferSink {
  const sink = new Bun.ArrayBufferSink()
  sink.start({ asUint8Array: true })
  return sink
}

/** The type of the runtime does not know that `asUint8Array` was asked for. */
const bytesOf = (sink: Bun.ArrayBufferSink | undefined) => sink?.end() as Uint8Array<ArrayBuffer> | undefined
