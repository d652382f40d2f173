import { cpSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import manifest from '../../package.json'
import { makeFolder } from '../support/folder.ts'
import { PROJECT, runWell } from './run.ts'

/** Gives the commit of a copy a fixed time and author, so that copies of the same files have the same commit. */
const COMMIT_AS = [
  ...['env', 'GIT_AUTHOR_DATE=2001-02-03T04:05:06Z', 'GIT_COMMITTER_DATE=2001-02-03T04:05:06Z'],
  ...['git', '-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'commit.gpgSign=false'],
]

/** Who publishes the copies. Registries take the owner only in lower case. */
export const HOMEPAGE = 'https://github.com/Garden-Club/plantstore'
const PUBLISHER = { homepage: HOMEPAGE, author: 'Garden Club <plants@example.org>' }

/** Copies the project's files as they are, but for the publisher, into a repository of its own, until it is disposed of. */
export async function copyProject() {
  const folder = makeFolder()
  const files = await runWell(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'])
  for (const file of files.split('\0').filter(Boolean)) {
    mkdirSync(dirname(join(folder.path, file)), { recursive: true })
    cpSync(join(PROJECT, file), join(folder.path, file))
  }
  await Bun.write(join(folder.path, 'package.json'), JSON.stringify({ ...manifest, ...PUBLISHER }, null, 2))
  await runWell(['git', 'init', '--quiet'], folder.path)
  await runWell(['git', 'add', '--all'], folder.path)
  await runWell([...COMMIT_AS, 'commit', '--quiet', '--message', 'release: all of it'], folder.path)
  return {
    path: folder.path,
    commit: (await runWell(['git', 'rev-parse', 'HEAD'], folder.path)).trim(),
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}
