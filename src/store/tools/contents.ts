// Tested in test/store/copy.test.ts.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { storeUnusable } from '../../engine/errors.ts'
import { type Counts, TABLES, type Table, toText } from '../tables.ts'

export type Row = readonly (bigint | string | Uint8Array | null)[]

/** A batch of rows ends with the row that reaches one of these limits. The length of its text is in characters or bytes. */
export const BATCH = { rows: 2000, textLength: 256 * 1024 } as const

/** What a store holds at one moment. */
export interface Contents {
  readonly counts: Counts
  /** The last identifiers of a user and a token. A store never uses an identifier again, even if its row is deleted. */
  readonly lastIds: { readonly userId: bigint; readonly tokenId: bigint }
  /** All rows of a table in the order of its key, in batches. */
  batches(table: Table): AsyncIterable<readonly Row[]>
}

export interface Source extends Contents {
  /** Rejects with `store_unusable` if another process has written to the store. Missing if nobody can, or may. */
  readonly requireUnchanged?: () => Promise<void>
}

/** A store to copy into. Nobody sees anything of it before `CopyTools.fill` has published it. */
export interface Target {
  insert(table: Table, rows: readonly Row[]): Promise<void>
  /** Stores the last identifiers after all rows, and reads what is stored. */
  read<T>(lastIds: Contents['lastIds'], use: (contents: Contents) => Promise<T>): Promise<T>
}

/** The number of rows of each table, and the SHA-256 of all rows. Equal stores of any kind have equal digests. */
export interface Digest {
  readonly counts: Counts
  readonly digest: string
}

export interface ContentsOptions {
  /** Called with the number of plants that are copied, or then read again from the copy, and the number of all plants. */
  readonly onProgress: (stage: 'copied' | 'verified', done: number, total: number) => void
  /** Stops the copy, which then throws the reason of the signal. */
  readonly signal: AbortSignal
}

/**
 * Copies all rows of a store into an empty one, and reads the copy. Rejects with `store_unusable` if the counts, the digests or
 * the last identifiers differ, or if the source was written to meanwhile.
 */
export async function copyContents(source: Source, target: Target, options: ContentsOptions): Promise<Digest> {
  const copied = await digestWith(source, 'copied', options, target.insert)
  if (!Bun.deepEquals(copied.counts, source.counts)) {
    throw storeUnusable(`Of ${JSON.stringify(source.counts)} rows ${JSON.stringify(copied.counts)} could be read.`)
  }
  await target.read(source.lastIds, async (contents) => {
    const found = await digestWith(contents, 'verified', options)
    if (Bun.deepEquals([found, contents.lastIds], [copied, source.lastIds])) return
    throw storeUnusable(`The copy is not the same: ${JSON.stringify(found)} instead of ${JSON.stringify(copied)}.`)
  })
  await source.requireUnchanged?.()
  options.signal.throwIfAborted()
  return copied
}

/** Reads and digests all contents in order, and passes each batch to `insert`. */
async function digestWith(
  contents: Contents,
  stage: 'copied' | 'verified',
  { onProgress, signal }: ContentsOptions,
  insert?: Target['insert'],
): Promise<Digest> {
  const hasher = new Bun.CryptoHasher('sha256')
  const counts = { users: 0, tokens: 0, plants: 0 }
  for (const table of TABLES) {
    hasher.update(`${table}\n`)
    for await (const rows of contents.batches(table)) {
      // A row is a line of JSON. Integers and bytes are strings. A column has one type, so no two rows have the same line.
      hasher.update(rows.map((row) => `${JSON.stringify(row.map(toText))}\n`).join(''))
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
