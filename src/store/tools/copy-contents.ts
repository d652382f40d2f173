import { setImmediate as nextTurn } from 'node:timers/promises'
import { storeUnusable } from '../errors.ts'
import type { Counts } from '../file-tools.ts'
import { type Contents, type Row, type Source, TABLES, type Target, toText } from './contents.ts'

/** The number of rows of each table, and the SHA-256 of all rows. Equal stores of any kind have equal digests. */
export interface Digest {
  readonly counts: Counts
  readonly digest: string
}

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

/** Reads and digests all contents in order, and passes each batch to `insert`. */
async function digestWith(
  contents: Contents,
  stage: CopyStage,
  { onProgress, signal }: ContentsOptions,
  insert?: Target['insert'],
): Promise<Digest> {
  const hasher = new Bun.CryptoHasher('sha256')
  const counts = { users: 0, tokens: 0, plants: 0 }
  for (const table of TABLES) {
    hasher.update(`${table}\n`)
    for await (const rows of contents.batches(table)) {
      hasher.update(rows.map(lineOf).join(''))
      counts[table] += rows.length
      await insert?.(table, rows)
      // Reading a file is synchronous, so signals need a turn.
      await nextTurn()
      signal.throwIfAborted()
      if (table === 'plants') onProgress(stage, counts.plants, contents.counts.plants)
    }
  }
  return { counts, digest: hasher.digest('hex') }
}

/** The row as JSON. Integers and bytes are strings. A column has one type, so no two rows have the same line. */
const lineOf = (row: Row): string => `${JSON.stringify(row.map(toText))}\n`
