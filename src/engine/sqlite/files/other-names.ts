// Tested in test/cli/transcripts/backup-files.txt.
import { lstatSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { orUndefined } from '../../../error.ts'
import { fileIdentity } from './file-system.ts'
import { isOpenElsewhere } from './lock.ts'

/** The name of an unfinished database is its final name, this, and a UUID. */
export const PARTIAL = '.partial-'

/** Matches these names. The group is the final name. */
const PARTIAL_NAME = new RegExp(`^(.+)\\${PARTIAL}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, 's')

/**
 * Says that a file is at another path, too, and what to do. SQLite names the WAL and the locks after the path, so programs at two
 * paths do not see each other's writes, and lose them. Removes a second name that a killed process has left.
 */
export function describeOtherName(path: string): string | undefined {
  if (statSync(path).nlink > 1) removeUnfinishedNames(path)
  const hasSecondName = statSync(path).nlink > 1
  if (!hasSecondName && !isMountPoint(path)) return undefined
  const problem = hasSecondName
    ? 'has a second name, a hard link: delete one name'
    : 'is a mount point: mount its directory'
  return `The database ${path} ${problem}, because the latest writes are in files beside it.`
}

/** A file gets its final name before it loses its unfinished one (`renameToNew`), and a kill in between leaves both. */
function removeUnfinishedNames(path: string): void {
  for (const name of readdirSync(dirname(path))) {
    const other = join(dirname(path), name)
    const isSame = PARTIAL_NAME.exec(name)?.[1] === basename(path) && fileIdentity(other) === fileIdentity(path)
    if (isSame) rmSync(other, { force: true })
  }
}

/** Whether the file itself is mounted, and no directory above it (proc_pid_mountinfo(5)). Other systems mount no files. */
function isMountPoint(path: string): boolean {
  const mounts = orUndefined(() => readFileSync('/proc/self/mountinfo', 'utf8')) ?? ''
  return mounts.split('\n').some((line) => unescaped(line.split(' ')[4] ?? '') === path)
}

/** White space and backslashes are octal there, like `\040`. */
const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))

/** The name of a file, with a dash instead of the time if `backupIn` gave it a time. */
export const withoutTime = (name: string): string => name.replace(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/, '-')

/** A file of less than this age may have a live process that has not locked it yet. */
const YOUNG_MS = 10_000

/** Removes what killed processes left of the same target, backups with other times in their names included. */
export function removeLeftovers(target: string): void {
  for (const name of readdirSync(dirname(target))) {
    const [, final = ''] = PARTIAL_NAME.exec(name) ?? []
    const path = join(dirname(target), name)
    if (withoutTime(final) === withoutTime(basename(target)) && isLeftover(path)) rmSync(path, { force: true })
  }
}

/** Whether no process makes a database in this file any more. A live process has locked the file, unless the file is young. */
function isLeftover(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isFile() !== true) return false
  // A file that also has its final name is finished, and another process may use it.
  return found.nlink > 1 || (Date.now() - found.mtimeMs >= YOUNG_MS && !isOpenElsewhere(path))
}
