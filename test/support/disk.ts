import { appendFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './folder.ts'
import type { Requirement } from './requirement.ts'

/** Mounts a small file system of its own, until it is disposed of. Needs the right to mount. */
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
    /** Takes all the space but some room. Returns the file to delete for more. */
    fillUp(roomBytes = 0): string {
      try {
        for (;;) appendFileSync(path, Buffer.alloc(4096))
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
      truncateSync(path, statSync(path).size - roomBytes)
      return path
    },
    /** Gives back the space that was taken. */
    makeRoom: () => rmSync(path),
    [Symbol.dispose]() {
      // Lazily: a test that failed may have left a file open.
      Bun.spawnSync(['umount', '-l', folder.path])
      folder[Symbol.dispose]()
    },
  }
}

export const MOUNTS: Requirement = {
  missing: 'the right to mount is missing',
  isMet: () => canMount(() => mountDisk(65536)),
}

function canMount(mountOne: () => Disposable): boolean {
  try {
    mountOne()[Symbol.dispose]()
    return true
  } catch {
    return false
  }
}

function mount(args: readonly string[]): void {
  run(['mount', ...args])
}

/** Runs a program. Throws its error output if it fails. */
export function run(command: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync([...command])
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr.toString()}`)
}

const FRAGILE_BYTES = 16 * 1024 ** 2

/** Mounts a file system that can turn read-only while files are open, as after an error of a real disk. */
export function mountFragileDisk() {
  const image = mountImage(FRAGILE_BYTES, ['mkfs.ext4', '-q'])
  return {
    path: image.path,
    turnReadOnly: () => mount(['-o', 'remount,abort', image.path]),
    /** Unmounts the disk and mounts it again: now it is writable and has what reached the disk. */
    mountAgain() {
      run(['umount', image.path])
      image.mount()
    },
    [Symbol.dispose]: image[Symbol.dispose],
  }
}

/** Mounts a file as a disk, with a file system that a command makes. */
function mountImage(bytes: number, makeFileSystem: readonly string[]) {
  const outside = makeFolder()
  const folder = makeFolder()
  const file = join(outside.path, 'disk')
  const dispose = () => {
    Bun.spawnSync(['umount', '-l', folder.path])
    folder[Symbol.dispose]()
    outside[Symbol.dispose]()
  }
  const mountIt = () => mount(['-o', 'loop', file, folder.path])
  try {
    writeFileSync(file, '')
    truncateSync(file, bytes)
    run([...makeFileSystem, file])
    mountIt()
  } catch (error) {
    dispose()
    throw error
  }
  return { path: folder.path, mount: mountIt, [Symbol.dispose]: dispose }
}

export const EXT4_DISKS = diskImages('mkfs.ext4', mountFragileDisk)

/** A program that makes a file system in a file, and a kernel that mounts it. `CI=true` asks for the program alone. */
function diskImages(mkfs: string, mountOne: () => Disposable): Requirement {
  return {
    missing: `${mkfs} is missing, or a file with its file system cannot be mounted`,
    isMet: () => canMount(mountOne),
    isMetInCi: () => Bun.which(mkfs) === null || canMount(mountOne),
  }
}

/** mkfs.btrfs needs at least 109 MiB. */
const IMAGE_BYTES = 128 * 1024 ** 2
/** The name that btrfs gives to the quota of the first subvolume. */
const FIRST_SUBVOLUME = '0/256'

/** A folder with a quota that can be used up, on a disk with space. */
export function mountQuotaDisk() {
  const image = mountImage(IMAGE_BYTES, ['mkfs.btrfs', '-q'])
  const path = join(image.path, 'limited')
  const btrfs = (...args: readonly string[]) => run(['btrfs', '-q', ...args])
  try {
    btrfs('subvolume', 'create', path)
    btrfs('quota', 'enable', image.path)
  } catch (error) {
    image[Symbol.dispose]()
    throw error
  }
  // Setting the limit through the folder itself would fail once the quota is used up.
  const limit = (bytes: number | 'none') => btrfs('qgroup', 'limit', String(bytes), FIRST_SUBVOLUME, image.path)
  return {
    path,
    /** Sets the quota to the size of the files in the folder, and some room. */
    fillUp(roomBytes = 0): void {
      const usedBytes = readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0)
      limit(usedBytes + roomBytes)
    },
    /** Removes the quota. */
    makeRoom: () => limit('none'),
    [Symbol.dispose]: image[Symbol.dispose],
  }
}

export const BTRFS_DISKS = diskImages('mkfs.btrfs', mountQuotaDisk)
