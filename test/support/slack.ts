/** The slack of an idle machine. Two cores with four busy loops, which give a process a third of its time, need no more. */
const IDLE_SLACK_MS = 5000
/** So many times the time of a command that does nothing. It is one of the runtime: a slow server gives itself no slack. */
const EMPTY_COMMANDS = 100

function emptyCommandMs(): number {
  const startMs = performance.now()
  Bun.spawnSync([process.execPath, '-e', ''])
  return performance.now() - startMs
}

/**
 * The time that this machine, as busy as it is now, may add to a promised deadline. On an idle one it is far below the limits that
 * a missed promise would run into: timeouts of 10 seconds and more, or none.
 */
export const SLACK_MS = Math.max(IDLE_SLACK_MS, EMPTY_COMMANDS * Math.max(...Array.from({ length: 3 }, emptyCommandMs)))

/** A busy machine gives a process less than this share of a processor. The look takes so long. */
const BUSY_SHARE = 1 / 8
const LOOK_MS = 300
let wasBusy = false

/** Whether others take most of this machine. Once they do, it is not asked again. */
export function isBusy(): boolean {
  wasBusy ||= shareOfProcessor() < BUSY_SHARE
  return wasBusy
}

function shareOfProcessor(): number {
  const startMs = performance.now()
  const before = process.cpuUsage()
  while (performance.now() < startMs + LOOK_MS);
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / LOOK_MS
}

/** How much longer the deadlines of the product are in tests that are not about them. */
const STRETCH = 20
/** Deadlines that a busy machine keeps. */
export const stretched = <All extends Readonly<Record<keyof All, number>>>(deadlines: All): All =>
  // The object has the same keys.
  Object.fromEntries(Object.entries<number>(deadlines).map(([name, ms]) => [name, ms * STRETCH])) as All
