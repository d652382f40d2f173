import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../support/folder.ts'

/** A file system of a few bytes of its own, gone after its use. Needs the right to mount. */
export function mountDisk(bytes: number) {
  const folder = makeFolder()
  mount(['-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'plantstore-test', folder.path])
  return {
    path: folder.path,
    /** Takes some of its space. Returns the file to delete for room. */
    fill(sizeBytes: number): string {
      const path = join(folder.path, 'ballast')
      writeFileSync(path, Buffer.alloc(sizeBytes))
      return path
    },
    /** Takes all the space that is left. Returns the file to delete for room. */
    fillUp(): string {
      const path = join(folder.path, 'ballast')
      try {
        for (;;) appendFileSync(path, Buffer.alloc(4096))
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
      return path
    },
    makeReadOnly: () => mount(['-o', 'remount,ro', folder.path]),
    [Symbol.dispose]() {
      // Lazily: a test that failed may have left a file open.
      Bun.spawnSync(['umount', '-l', folder.path])
      folder[Symbol.dispose]()
    },
  }
}

/** Whether the tests may mount. Where they must, with `CI=true`, they fail instead of being skipped. */
export const MAY_SKIP_DISKS = process.env.CI !== 'true' && !canMount()

function canMount(): boolean {
  try {
    mountDisk(65536)[Symbol.dispose]()
    return true
  } catch {
    return false
  }
}

function mount(args: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(['mount', ...args])
  if (exitCode !== 0) throw new Error(`cannot mount: ${stderr.toString()}`)
}
