import { runnerOf, TARGETS } from './targets.ts'

/** Whether an executable for another machine cannot be run here. With `CI=true` it is run all the same, and fails. */
export const EMULATION_IS_MISSING =
  process.env.CI !== 'true' && TARGETS.some((target) => runnerOf(target) === undefined)
/** For the names of the tests that run executables for other machines. */
export const EMULATION_NOTE = EMULATION_IS_MISSING ? ' (skipped for another machine: qemu-user is missing)' : ''
