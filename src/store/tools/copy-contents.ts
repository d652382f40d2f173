import { nextTurn } from '../../domain/next-turn.ts'
import { storeUnusable } from '../errors.ts'
import { type Contents, type Digest, digestContents, type Source, type Target } from './contents.ts'

/** The stages of a copy. Plants are copied, read again from the copy, and read again from the source. */
export type CopyStage = 'copied' | 'verified' | 'compared'

export interface ContentsOptions {
  /** Called with the number of plants that this stage is done with, and the number of all plants. */
  readonly onProgress: (stage: CopyStage, done: number, total: number) => void
  /** Stops the copy, which then throws the reason of the signal and does not finish the target. */
  readonly signal: AbortSignal
}

/**
 * Copies all rows of a store into an empty one. Then it reads the copy, and also the source if others could write to it.
 * Rejects with `store_unusable` and does not finish the target if the counts or the digests differ.
 */
export async function copyContents(source: Source, target: Target, options: ContentsOptions): Promise<Digest> {
  const copied = await digestWith(source, 'copied', options, target.insert)
  if (!Bun.deepEquals(copied.counts, source.counts)) {
    throw storeUnusable(`Of ${JSON.stringify(source.counts)} rows ${JSON.stringify(copied.counts)} could be read.`)
  }
  const found = await target.read((contents) => digestWith(contents, 'verified', options))
  if (!Bun.deepEquals(found, copied)) {
    throw storeUnusable(`The copy is not the same: ${JSON.stringify(found)} instead of ${JSON.stringify(copied)}.`)
  }
  await source.readAgain?.(async (contents) => {
    const now = await digestWith(contents, 'compared', options)
    if (Bun.deepEquals([now, contents.lastIds], [copied, source.lastIds])) return
    throw storeUnusable('The store was written to while it was copied: end its servers, or use --snapshot.')
  })
  await target.finish(source.lastIds)
  return copied
}

function digestWith(
  contents: Contents,
  stage: CopyStage,
  { onProgress, signal }: ContentsOptions,
  insert?: Target['insert'],
): Promise<Digest> {
  let plants = 0
  return digestContents(contents, async (table, rows) => {
    await insert?.(table, rows)
    // Reading a file is synchronous, so signals need a turn.
    await nextTurn()
    signal.throwIfAborted()
    if (table !== 'plants') return
    plants += rows.length
    onProgress(stage, plants, contents.counts.plants)
  })
}
