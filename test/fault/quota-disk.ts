import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { diskImages, mountImage, run } from '../support/disk.ts'

/** The least that mkfs.btrfs takes is 109 MiB. */
const IMAGE_BYTES = 128 * 1024 ** 2
/** What btrfs calls the quota of the first folder that is made with one. */
const FIRST_SUBVOLUME = '0/256'

/** A folder on a disk with space, with a quota that can be used up. */
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
  // Through the folder itself it could not be raised again.
  const limit = (bytes: number | 'none') => btrfs('qgroup', 'limit', String(bytes), FIRST_SUBVOLUME, image.path)
  return {
    path,
    /** Sets the quota to what the files in the folder have now, and some room. */
    fillUp(roomBytes = 0): void {
      const usedBytes = readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0)
      limit(usedBytes + roomBytes)
    },
    /** Takes the quota away. */
    makeRoom: () => limit('none'),
    [Symbol.dispose]: image[Symbol.dispose],
  }
}

export const BTRFS_DISKS = diskImages('mkfs.btrfs', mountQuotaDisk)
