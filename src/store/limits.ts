/** Writes that may wait for the disk, and the text they may hold, in UTF-16 code units. What comes then is refused. */
export const QUEUE_MAX_WRITES = 16_384
export const QUEUE_MAX_TEXT_LENGTH = 16 * 1024 * 1024
/** A group ends with the write that reaches either, so that the first of them does not wait for too many. */
export const GROUP_MAX_WRITES = 512
export const GROUP_MAX_TEXT_LENGTH = 1024 * 1024
/** Plants of a deleted user that go in one transaction, and the pause after it in which others can write. */
export const DELETE_BATCH_PLANTS = 1000
export const DELETE_PAUSE_MS = 20
