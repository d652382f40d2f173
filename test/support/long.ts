/** Whether this is `bun run check:long`. docs/explanation/reliability.md has its numbers of rounds. */
export const IS_LONG = process.env.FAULT_LONG === '1'
