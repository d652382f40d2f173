/**
 * The time that a busy machine may add to a promised deadline. Two cores with four busy loops give a process a third of its time.
 * It is far below the limits that a missed promise would run into: timeouts of 10 seconds and more, or none.
 */
export const SLACK_MS = 5000

/** How much longer the deadlines of the product are in tests that are not about them. */
const STRETCH = 20
/** Deadlines that a busy machine keeps. */
export const stretched = <All extends Readonly<Record<keyof All, number>>>(deadlines: All): All =>
  // The object has the same keys.
  Object.fromEntries(Object.entries<number>(deadlines).map(([name, ms]) => [name, ms * STRETCH])) as All
