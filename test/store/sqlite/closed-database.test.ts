import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { serve } from '../../support/executable.ts'
import { createUser, listIds } from '../fixtures.ts'
import { makeDatabaseFolder, openForTest } from './files.ts'

describe('a closed database is one file', () => {
  test('after every kind of read and write', async () => {
    using files = makeDatabaseFolder()
    const { store, close } = await openForTest(files.path)
    const user = await createUser(store, 'me')
    await store.createPlant(user, { id: 1n, name: 'Fern' })
    await listIds(store, user)
    await store.checkReady()
    await store.checkIntegrity()
    await store.deletePlant(user, 1n)
    await store.deleteUser('me')

    await close()

    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
  })

  test('after a process was killed, and another one opened and closed it', async () => {
    using files = makeDatabaseFolder()
    const server = await serve(files.path)
    await server.kill()
    expect(readdirSync(files.folder).length).toBeGreaterThan(1)

    await (await openForTest(files.path)).close()

    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
  })
})
