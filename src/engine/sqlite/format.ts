// Tested in test/engine/toy.test.ts.
import type { Database } from 'bun:sqlite'

export type Counts = Readonly<Record<string, number>>

/** What the engine needs to know of a product's database file. */
export interface Format<C extends Counts = Counts> {
  /** Marks a file as the product's (https://sqlite.org/pragma.html#pragma_application_id). */
  readonly applicationId: number
  /** Scripts in SQL, in order. The `user_version` of a database is the number of those that it has had. */
  readonly migrations: readonly string[]
  /** Finds the rows that break the product's rules, a line each. A backup may have an older schema. */
  findBrokenRows(db: Database): readonly string[]
  /** Counts the rows of the product's tables, also in a database that is attached as `source`. A clone must have as many. */
  countRows(db: Database, schema: 'main' | 'source'): C
  /** The table with the most rows, and its primary key in SQL. It is cloned in batches, and its rows are the progress. */
  readonly largest: { readonly table: string; readonly key: readonly string[] }
  /** The tables whose rows a clone has not, because they tell of the one file. */
  readonly notCloned: readonly string[]
}
