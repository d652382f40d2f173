/** Something that tests need and a machine may lack: a program, a right, a feature of the kernel. */
export interface Requirement {
  /** Says what is missing, like `strace is missing`. */
  readonly missing: string
  readonly isMet: () => boolean
}

/** A program that must be in the `PATH`. */
export const program = (name: string): Requirement => ({
  missing: `${name} is missing`,
  isMet: () => Bun.which(name) !== null,
})

/**
 * For `test.skipIf` and `describe.skipIf`: whether this machine lacks something that the tests need. Prints what is missing.
 * With `CI=true` nothing counts as missing, so that the tests run and fail.
 */
export function lacks(...requirements: readonly Requirement[]): boolean {
  if (process.env.CI === 'true') return false
  const unmet = requirements.filter((requirement) => !isMet(requirement))
  for (const { missing } of unmet) console.error(`SKIPPED TESTS: ${missing}. With CI=true they fail.`)
  return unmet.length > 0
}

/** To ask can take long: some requirements mount a disk or start a container. */
const answers = new Map<Requirement, boolean>()

function isMet(requirement: Requirement): boolean {
  const answer = answers.get(requirement) ?? requirement.isMet()
  answers.set(requirement, answer)
  return answer
}
