import { expect, test } from 'bun:test'
import manifest from '../../../package.json'
import { PROJECT, runIn } from '../run.ts'
import { releaseNotes } from './notes.ts'

const CHANGELOG = '# Changelog\n\n## [1.1.0] - 2027-01-01\n\n### Added\n\n- New.\n\n## [1.0.0] - 2026-11-24\n\nFirst.\n'

test('the notes of a release are its section of the changelog, and no other', () => {
  expect(releaseNotes(CHANGELOG, '1.1.0')).toBe('### Added\n\n- New.\n')
  expect(releaseNotes(CHANGELOG, '1.0.0')).toBe('First.\n')
})

test.each(['1.0', '2.0.0', ''])('there are no notes for %p, which has no section', (version) => {
  expect(() => releaseNotes(CHANGELOG, version)).toThrow('has no section')
})

test('the changelog has notes for the version of package.json', async () => {
  const { stdout, exitCode } = await runIn(['bun', 'test/ship/publish/notes.ts', manifest.version], PROJECT)

  expect(exitCode).toBe(0)
  expect(stdout).toStartWith('The first release: ')
})
