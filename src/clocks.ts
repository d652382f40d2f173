// Tested in test/fault/clock.test.ts.
/** The clocks of the process. */
export interface Clocks {
  /** Milliseconds since 1970-01-01 UTC, by the clock of the machine. */
  nowMs(): number
  /** Milliseconds of a clock that never jumps. */
  monotonicMs(): number
}
