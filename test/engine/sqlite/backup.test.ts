import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseOf } from '../../../src/store/open.ts'
import { rejectionOf } from '../../store/fixtures.ts'
import { makeDatabase, makeDatabaseFolder } from '../../store/sqlite/files.ts'

describe.each(['backup', 'restore'] as const)('%s', (tool) => {
  test('refuses a file that appears while it runs, and does not change that file', async () => {
    using folder = makeDatabaseFolder()
    await makeDatabase(folder.path)
    const target = join(folder.folder, 'target.db')
    const onProgress = () => writeFileSync(target, 'precious')
    const [database, file] = tool === 'backup' ? [folder.path, target] : [target, folder.path]
    const tools = await databaseOf(database).fileTools()
    const refused = await rejectionOf(tools[tool](file, { onProgress }))

    expect(refused).toMatchObject({
      kind: 'file_unusable',
      message: expect.stringContaining(`${target} is there already`),
    })
    expect(readFileSync(target, 'utf8')).toBe('precious')
    expect(readdirSync(folder.folder).sort()).toEqual(['plantstore.db', 'target.db'])
  })

  test('is stopped before it copies a plant by a signal that comes while it checks the source', async () => {
    using folder = makeDatabaseFolder()
    await makeDatabase(folder.path)
    const target = join(folder.folder, 'target.db')
    const [database, file] = tool === 'backup' ? [folder.path, target] : [target, folder.path]
    const tools = await databaseOf(database).fileTools()
    const stopping = new AbortController()
    // The check blocks this thread, so the signal is handled after it.
    setImmediate(() => stopping.abort(new Error('stopped')))
    const options = { signal: stopping.signal, onProgress: () => expect.unreachable() }

    expect(await rejectionOf(tools[tool](file, options))).toMatchObject({ message: 'stopped' })
    expect(readdirSync(folder.folder)).toEqual(['plantstore.db'])
  })
})
