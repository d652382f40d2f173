import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { provideFirstToken } from '../../src/cli/serve/first-token.ts'
import { createLogger } from '../../src/log.ts'
import { openStore } from '../../src/store/open.ts'
import { makeFolder } from '../support/folder.ts'
import { makeIo } from '../support/io.ts'

const TOKEN = /plst_[0-9A-Za-z]{49}/
const ADDRESS = { host: '127.0.0.1', port: 3000 }

/** A store without tokens, whose lock another program holds, and a server that makes the first one. */
async function openLocked() {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const store = await openStore(database, () => {})
  const other = new Database(database)
  other.run('begin immediate')
  const told: string[] = []
  const lifecycle = { isDraining: false }
  const log = createLogger('error', { write: () => {} })
  const io = { ...makeIo().io, tell: async (text: string) => void told.push(text) }
  const options = { database, firstToken: true, tls: undefined } as const
  const provided = provideFirstToken({ store, address: ADDRESS, log, options, io }, lifecycle)
  // Waits for the lock as long as the first token does. When this is refused, the first token was refused before.
  await expect(store.checkReady()).rejects.toMatchObject({ kind: 'store_busy' })
  return {
    ...{ store, lifecycle, told, provided },
    unlock: () => other.run('commit'),
    async [Symbol.asyncDispose]() {
      other.close(true)
      await store.close()
      folder[Symbol.dispose]()
    },
  }
}

describe.concurrent('a server whose store another program has locked', () => {
  test('makes the first token when the lock is gone', async () => {
    await using opened = await openLocked()

    expect(opened.told).toEqual([])
    opened.unlock()
    await opened.provided

    expect(opened.told).toEqual([expect.stringMatching(TOKEN)])
    expect(await opened.store.hasTokens()).toBe(true)
  })

  test('makes no first token once it drains', async () => {
    await using opened = await openLocked()

    opened.lifecycle.isDraining = true
    await opened.provided

    expect(opened.told).toEqual([])
    opened.unlock()
    expect(await opened.store.hasTokens()).toBe(false)
  })
})
