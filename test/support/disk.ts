import { appendFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'

/** A file system of a few bytes of its own, gone after its use. Needs the right to mount. */
export function mountDisk(bytes: number) {
  const folder = makeFolder()
  const path = join(folder.path, 'ballast')
  try {
    mount(['-t', 'tmpfs', '-o', `size=${bytes},mode=0700`, 'plantstore-test', folder.path])
  } catch (error) {
    folder[Symbol.dispose]()
    throw error
  }
  return {
    path: folder.path,
    /** Takes some of its space. Returns the file to delete for room. */
    fill(sizeBytes: number): string {
      writeFileSync(path, Buffer.alloc(sizeBytes))
      return path
    },
    /** Takes all the space that is left, but for some room. Returns the file to delete for more. */
    fillUp(roomBytes = 0): string {
      try {
        for (;;) appendFileSync(path, Buffer.alloc(4096))
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
      truncateSync(path, statSync(path).size - roomBytes)
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

/** Whether the tests that mount are skipped: where nothing can be mounted. With `CI=true` they fail instead. */
export const DISKS_ARE_SKIPPED = process.env.CI !== 'true' && !canMount()
/** For the names of those tests, to say that they are skipped. */
export const DISKS_NOTE = DISKS_ARE_SKIPPED ? ' (skipped: nothing can be mounted here)' : ''

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

const IMAGE_BYTES = 16 * 1024 ** 2

/** A file system on a disk of its own that can turn read-only while files are open, as after an error of a real disk. */
export function mountFragileDisk() {
  const image = makeFolder()
  const folder = makeFolder()
  const file = join(image.path, 'disk')
  const dispose = () => {
    Bun.spawnSync(['umount', '-l', folder.path])
    folder[Symbol.dispose]()
    image[Symbol.dispose]()
  }
  try {
    writeFileSync(file, '')
    truncateSync(file, IMAGE_BYTES)
    const made = Bun.spawnSync(['mkfs.ext4', '-q', file])
    if (made.exitCode !== 0) throw new Error(`cannot make a file system: ${made.stderr.toString()}`)
    mount(['-o', 'loop', file, folder.path])
  } catch (error) {
    dispose()
    throw error
  }
  return {
    path: folder.path,
    turnReadOnly: () => mount(['-o', 'remount,abort', folder.path]),
    [Symbol.dispose]: dispose,
  }
}

/** Whether the tests with such a disk are skipped: where no file can be mounted as a disk, or mkfs.ext4 is missing. */
export const FRAGILE_DISKS_ARE_SKIPPED = !canMountFragile()

function canMountFragile(): boolean {
  if (process.env.CI === 'true' && Bun.which('mkfs.ext4') === null) return true
  try {
    mountFragileDisk()[Symbol.dispose]()
    return true
  } catch {
    return false
  }
}
