import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../../src/domain/error.ts'
import { backupStore, restoreStore } from '../../../src/store/open.ts'
import { makeDatabase, makeDatabaseFolder } from './files.ts'

describe.each([
  ['backup', backupStore, 'file_unusable'],
  ['restore', restoreStore, 'store_unusable'],
] as const)('%s', (_, make, kind) => {
  test('refuses a file that appears while it runs, and leaves it as it is', async () => {
    using folder = makeDatabaseFolder()
    await makeDatabase(folder.path)
    const target = join(folder.folder, 'target.db')
    const onProgress = () => writeFileSync(target, 'precious')
    const refused = await make(folder.path, target, { onProgress }).catch((error: unknown) => error)

    expect(refused).toBeInstanceOf(AppError)
    expect(refused).toMatchObject({ kind, message: expect.stringContaining(`${target} is there already`) })
    expect(readFileSync(target, 'utf8')).toBe('precious')
    expect(readdirSync(folder.folder).sort()).toEqual(['plantstore.db', 'target.db'])
  })
})
