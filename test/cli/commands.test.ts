import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { serveDatabase } from './support/database.ts'

describe.concurrent('the command line', () => {
  test('speaks of no other command in the help of one', async () => {
    const commands = ['token create', 'token rotate', 'token list', 'token revoke', 'export', 'import']
    const helps = await Promise.all(commands.map((command) => runPlantstore([...command.split(' '), '--help'])))
    const optionOf = (flag: string) =>
      helps.map(({ stdout }) => new RegExp(`^  ${flag} <\\w+>  +(.*\\n(?: {6,}.*\\n)*)`, 'm').exec(stdout)?.[1])
    const texts = [...optionOf('--user'), ...optionOf('--expires')].map((text) => text?.replace(/\s+/g, ' ').trim())

    expect(texts).toEqual([
      'The user of the new token. The command creates a missing user.',
      ...[undefined, 'Only the tokens of this user.', 'Only the tokens of this user.', 'Only the plants of this user.'],
      'The user of the lines that name none.',
      'The token expires after this time, like 90d. By default never.',
      'The new token expires after this time, like 90d. By default after the lifetime of the old token.',
      ...Array(4).fill(undefined),
    ])
  })
})

describe.concurrent('commands that need no database', () => {
  test('print the licences of all third-party software, and the document that a server serves', async () => {
    await using service = await serveDatabase()
    using folder = makeFolder()
    const licenses = await runPlantstore(['licenses'], { cwd: folder.path })
    const openapi = await runPlantstore(['openapi'], { cwd: folder.path })
    const served = await service.server.request('GET', '/openapi.json')

    const text = await Bun.file(join(import.meta.dir, '../../src/cli/third-party-licenses.txt')).text()
    expect(licenses).toEqual({ stdout: text, stderr: '', exitCode: 0 })
    expect(openapi).toMatchObject({ stderr: '', exitCode: 0 })
    expect(JSON.parse(openapi.stdout)).toEqual(await served.json())
    expect(readdirSync(folder.path)).toEqual([])
  })
})
