import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { runPlantstore, serve } from '../../support/executable.ts'
import { createUser, listIds, newToken } from '../fixtures.ts'
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

  test('after the last of several openings was closed, and it has what all of them wrote', async () => {
    using files = makeDatabaseFolder()
    const first = await openForTest(files.path)
    const second = await openForTest(files.path)
    await first.store.createTokens([newToken('me')])
    await first.close()
    await second.store.createTokens([newToken('you')])
    await second.close()

    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
    await using opened = await openForTest(files.path)
    expect(await opened.store.listUsers()).toMatchObject([{ name: 'me' }, { name: 'you' }])
  })

  test('after a process was killed, and another one opened and closed it', async () => {
    using files = makeDatabaseFolder()
    const server = await serve(files.path)
    await server.kill()
    expect(readdirSync(files.folder).length).toBeGreaterThan(1)

    await (await openForTest(files.path)).close()

    expect(readdirSync(files.folder)).toEqual(['plantstore.db'])
  })

  test('but a command that closes it leaves a server the files that it needs', async () => {
    using files = makeDatabaseFolder()
    await using opened = await openForTest(files.path)
    const { exitCode } = await runPlantstore(['token', 'create', '--user', 'me', '--database', files.path])

    expect(exitCode).toBe(0)
    expect(readdirSync(files.folder).sort()).toEqual(['plantstore.db', 'plantstore.db-shm', 'plantstore.db-wal'])
    const [token] = await opened.store.listTokens({ userName: 'me' })
    await opened.store.createPlant(token?.userId ?? 0, { id: 1n, name: 'Fern' })
    expect(await opened.store.listUsers()).toMatchObject([{ name: 'me', plants: 1, tokens: 1 }])
  })
})
