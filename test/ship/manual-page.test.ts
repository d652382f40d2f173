import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { OPTIONS } from '../../src/config.ts'
import { HOMEPAGE } from '../../src/version.ts'
import { leafCommands, nameOf } from '../support/commands.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks, program } from '../support/requirement.ts'
import { manualPage } from './manual-page.ts'
import { runIn, runWell } from './run.ts'

const COMMITTED_AT = new Date('2026-11-24T16:00:00Z')

async function writePage() {
  const folder = makeFolder()
  const path = join(folder.path, 'plantstore.1')
  await Bun.write(path, await manualPage(COMMITTED_AT))
  return { path, [Symbol.dispose]: folder[Symbol.dispose] }
}

test.skipIf(lacks(program('mandoc')))('mandoc finds nothing to say about the manual page', async () => {
  using page = await writePage()

  expect(await runIn(['mandoc', '-T', 'lint', page.path])).toEqual({ stdout: '', stderr: '', exitCode: 0 })
})

test.skipIf(lacks(program('man')))('man shows each command, option and variable in 80 columns', async () => {
  using page = await writePage()
  const man = ['env', 'MANWIDTH=80', 'LC_ALL=C.UTF-8', 'man', '--no-hyphenation', '--local-file', page.path]
  const shown = await runWell(man)
  const words = [
    ...(await leafCommands()).map((command) => nameOf(command).join(' ')),
    ...Object.values(OPTIONS).flatMap(({ long, envVar }) => [`${long}`, envVar ?? []].flat()),
  ]

  const lines = shown.split('\n').map((line) => line.trim())
  expect(words.filter((word) => !lines.some((line) => line === word || line.startsWith(`${word} `)))).toEqual([])
  expect(shown.split('\n').filter((line) => Bun.stringWidth(line) > 80)).toEqual([])
  expect(shown).toContain('November 24, 2026')
  expect(shown).toContain(HOMEPAGE)
})
