import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { diskImages, mountImage, run } from '../support/disk.ts'

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
