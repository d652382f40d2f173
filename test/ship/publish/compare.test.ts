import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../support/folder.ts'
import { runIn, runWell } from '../run.ts'

/** A release whose executables and bill of materials have these texts. */
async function makeRelease(folder: string, executable: string, bill: string): Promise<void> {
  for (const target of ['linux-x64', 'linux-arm64', 'darwin-x64']) {
    const name = `plantstore-1.0.0-${target}`
    mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, name, 'plantstore'), target.startsWith('linux') ? executable : 'abc')
    const pack = ['tar', '--create', '--gzip', '--mtime=@0', '--sort=name', '--file', `${name}.tar.gz`, name]
    await runWell(pack, folder)
  }
  writeFileSync(join(folder, 'plantstore-1.0.0.cdx.json'), bill)
}

test.each([
  ['takes the same bytes', 0, 'abc', 'bill'],
  ['takes executables for Linux that differ in the bit of Bun', 0, 'abg', 'bill'],
  ['refuses another bit', 1, 'aba', 'bill'],
  ['refuses that bit twice', 1, 'afg', 'bill'],
  ['refuses a longer executable', 1, 'abcd', 'bill'],
  ['refuses another bill of materials', 1, 'abc', 'bilh'],
  ['refuses a longer bill of materials', 1, 'abc', 'bills'],
])('the comparison of two releases %s', async (_, exitCode, executable, bill) => {
  using folder = makeFolder()
  const [one, other] = [join(folder.path, 'one'), join(folder.path, 'other')]
  await makeRelease(one, 'abc', 'bill')
  await makeRelease(other, executable, bill)
  const compared = await runIn(['bash', 'test/ship/publish/compare.sh', one, other])

  expect({ exitCode: compared.exitCode, differs: compared.stdout.includes(': different bytes') }).toEqual({
    exitCode,
    differs: exitCode === 1,
  })
})
