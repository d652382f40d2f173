/**
 * Writes that may wait, and the text they may hold, in UTF-16 code units. A queue refuses further writes. If no text waits, it takes
 * a text of any length.
 */
export const QUEUE_MAX_WRITES = 16_384
export const QUEUE_MAX_TEXT_LENGTH = 16 * 1024 * 1024
/** A group ends with the write that reaches one of these limits, so that the first write does not wait for too many. */
export const GROUP_MAX_WRITES = 512
export const GROUP_MAX_TEXT_LENGTH = 1024 * 1024
/**
 * How long a write may wait for a group: behind a full group that waits too, as one of the next group, and if another process has
 * locked the database. A stall of the disk for a second refuses nobody unless there is more than the next group can take.
 */
export const QUEUE_MAX_WAIT_MS = 500
export const NEXT_GROUP_MAX_WAIT_MS = 1500
export const LOCK_MAX_WAIT_MS = 2000
/** How many users have their plants counted in memory for a quota. For one more user, counting begins anew. */
export const COUNTED_USERS_MAX = 10_000
/** Plants of a deleted user that one transaction deletes, and the pause after it in which others can write. */
export const DELETE_BATCH_PLANTS = 1000
export const DELETE_PAUSE_MS = 20
