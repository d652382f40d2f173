// Tested in test/store/contract/users.ts.
import type { TaskOptions } from '../domain/store.ts'

/** Plants of a deleted user that one transaction deletes, and the pause after it in which others can write. */
export const DELETE_BATCH_PLANTS = 1000
const DELETE_PAUSE_MS = 20

/**
 * Deletes the plants of a user, and the user with the last batch. `deleteBatch` returns how many plants it has deleted: fewer
 * than `DELETE_BATCH_PLANTS` if they were the last. Returns how many all were. `total` is their number at the start.
 */
export async function deleteInBatches(
  total: number,
  deleteBatch: () => Promise<number>,
  { onProgress, signal }: TaskOptions,
): Promise<number> {
  let plants = 0
  for (;;) {
    await onProgress?.(plants, total)
    signal?.throwIfAborted()
    const deleted = await deleteBatch()
    plants += deleted
    if (deleted < DELETE_BATCH_PLANTS) return plants
    await Bun.sleep(DELETE_PAUSE_MS)
  }
}
