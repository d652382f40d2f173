import { describe, expect, test } from 'bun:test'
import { backupStore, backupStoreInto, openTransfer, restoreStore, statusOfStore } from '../../src/store/open.ts'
import { rejectionOf } from '../support/rejection.ts'

describe.each(['postgres://me@localhost/plants', 'postgresql:///plants'])('%s', (database) => {
  test.each([
    ['backup FILE', () => backupStore(database, 'plants.db', {})],
    ['backup --dir', () => backupStoreInto(database, '.', { nowMs: 0 })],
    ['export and import', () => openTransfer(database, () => 0)],
    ['status', () => statusOfStore(database, 0)],
    ['restore', () => restoreStore('plants.db', database, {})],
  ])('is refused by %s in one line that names pg_dump', async (_, run) => {
    expect(await rejectionOf(run())).toMatchObject({
      kind: 'misused',
      message: expect.stringMatching(/^[^\n]*pg_dump[^\n]*$/),
    })
  })
})
