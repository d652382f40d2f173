/**
 * The time that a busy machine may add to a promised deadline. Two cores with four busy loops give a process a third of its time.
 * It is far below the limits that a missed promise would run into: timeouts of 10 seconds and more, or none.
 */
export const SLACK_MS = 5000
