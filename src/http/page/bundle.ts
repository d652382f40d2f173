// Tested in test/http/pages.test.ts.
import { join } from 'node:path'

/**
 * A macro: bundles a file of `src/page` for browsers, and returns its text, which the executable contains. From source, the
 * first request for a page runs this. Within a macro `Bun.build` would wait for itself, so this starts the command.
 */
export function bundle(file: string, format = 'iife'): string {
  const { stdout, stderr, success } = Bun.spawnSync({
    cmd: [process.execPath, 'build', file, '--production', `--format=${format}`],
    cwd: join(import.meta.dir, '../../page'),
  })
  if (!success) throw new Error(stderr.toString())
  return stdout.toString()
}
