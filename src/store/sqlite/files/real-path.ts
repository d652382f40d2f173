import { existsSync, realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

/**
 * The absolute path of a file without links, because SQLite puts its other files beside the file itself and not beside a link.
 * A link to a pipe, like /dev/stdout, leads to no path: what is neither file nor directory keeps its name.
 */
export function realPath(path: string): string {
  if (!existsSync(path)) return resolve(path)
  const found = statSync(path)
  return found.isFile() || found.isDirectory() ? realpathSync(path) : resolve(path)
}
