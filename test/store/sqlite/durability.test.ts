import { expect, test } from 'bun:test'
import { openWriter } from '../../../src/store/sqlite/connection.ts'
import { makeDatabaseFolder } from './files.ts'

/** What SQLite says of itself (https://sqlite.org/pragma.html#pragma_synchronous). */
const SYNCHRONOUS = { full: 2n, normal: 1n } as const

test.each(['full', 'normal'] as const)(
  'a connection that writes with durability %s says so to SQLite',
  (durability) => {
    using files = makeDatabaseFolder()
    const writer = openWriter(files.path, durability)
    try {
      expect(writer.prepare('pragma synchronous').values()).toEqual([[SYNCHRONOUS[durability]]])
      expect(writer.prepare('pragma journal_mode').values()).toEqual([['wal']])
    } finally {
      writer.close(true)
    }
  },
)
