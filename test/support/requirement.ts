/** Something that tests need and a machine may lack: a program, a right, a feature of the kernel. */
export interface Requirement {
  /** Says what is missing, like `strace is missing`. */
  readonly missing: string
  readonly isMet: () => boolean
  /** The same with `CI=true`, where tests are skipped only for what no package brings; always if left out. */
  readonly isMetInCi?: () => boolean
}

/** A program that must be in the `PATH`. */
export const program = (name: string): Requirement => ({
  missing: `${name} is missing`,
  isMet: () => Bun.which(name) !== null,
})

const IS_CI = process.env.CI === 'true'

/**
 * For `test.skipIf` and `describe.skipIf`: whether this machine lacks something that the tests need. Prints what is missing.
 * With `CI=true` no program counts as missing, so that the tests run and fail.
 */
export function lacks(...requirements: readonly Requirement[]): boolean {
  const unmet = requirements.filter((requirement) => !isMet(requirement))
  for (const { missing } of unmet) console.error(`SKIPPED TESTS: ${missing}`)
  return unmet.length > 0
}

/** To ask can take long: some requirements mount a disk. */
const answers = new Map<Requirement, boolean>()

function isMet(requirement: Requirement): boolean {
  const answer = answers.get(requirement) ?? (IS_CI ? (requirement.isMetInCi?.() ?? true) : requirement.isMet())
  answers.set(requirement, answer)
  return answer
}
