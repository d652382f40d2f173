import { lstatSync, statSync } from 'node:fs'

/**
 * The file that is at a path now: its device and inode. A link to a file is not the same as the file, because SQLite looks for
 * the WAL beside the target of the link.
 */
export function fileIdentity(path: string): string {
  try {
    const file = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return file === undefined ? 'nothing' : `${file.dev} ${file.ino}`
  } catch {
    return 'out of reach'
  }
}

/** The bits of a file's mode that let other users read and write it. */
const OPEN_TO_OTHERS = 0o066

/** The files of the database that other users may read or write. */
export const filesOpenToOthers = (path: string): string[] =>
  [path, `${path}-wal`, `${path}-shm`].filter((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & OPEN_TO_OTHERS) !== 0
  })
