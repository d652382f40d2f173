import { nextTurn } from '../../domain/next-turn.ts'
import { storeUnusable } from '../errors.ts'
import { type Contents, type Digest, digestContents, type Source, type Target } from './contents.ts'

/** What is being done with plants: they are copied, read there again, and compared with those that were copied. */
export type CopyStage = 'copied' | 'verified' | 'compared'

/** How contents are copied. */
export interface ContentsOptions {
  /** Told, of the plants, how many are done, and how many there are. */
  readonly onProgress: (stage: CopyStage, done: number, total: number) => void
  /** Ends it early, and the reason of the signal is thrown: then the target is not finished. */
  readonly signal: AbortSignal
}

/**
 * Copies all that a store holds into an empty one, and reads it there again: it has as many rows as there were, and the same
 * digest. So has the source by then, where somebody may have written to it. Rejects with `store_unusable` if not; then the
 * target is not finished.
 */
export async function copyContents(source: Source, target: Target, options: ContentsOptions): Promise<Digest> {
  const copied = await digestWith(source, 'copied', options, target.add)
  if (!Bun.deepEquals(copied.counts, source.counts)) {
    throw storeUnusable(`Of ${JSON.stringify(source.counts)} rows ${JSON.stringify(copied.counts)} could be read.`)
  }
  const found = await target.read((contents) => digestWith(contents, 'verified', options, async () => {}))
  if (!Bun.deepEquals(found, copied)) {
    throw storeUnusable(`The copy is not the same: ${JSON.stringify(found)} instead of ${JSON.stringify(copied)}.`)
  }
  await source.readAgain?.(async (contents) => {
    const now = await digestWith(contents, 'compared', options, async () => {})
    if (Bun.deepEquals([now, contents.given], [copied, source.given])) return
    throw storeUnusable('The store was written to while it was copied: end its servers, or use --snapshot.')
  })
  await target.finish(source.given)
  return copied
}

function digestWith(
  contents: Contents,
  stage: CopyStage,
  { onProgress, signal }: ContentsOptions,
  take: Target['add'],
): Promise<Digest> {
  let plants = 0
  return digestContents(contents, async (table, rows) => {
    await take(table, rows)
    // What reads a file does not let signals through by itself.
    await nextTurn()
    signal.throwIfAborted()
    if (table !== 'plants') return
    plants += rows.length
    onProgress(stage, plants, contents.counts.plants)
  })
}
