import { runIn } from './run.ts'

/** The known vulnerabilities of the packages in the lock file. */
export interface Advisories {
  /** Why the registry could not be asked. That is no problem, but the audit says so. */
  readonly unreachable: string | undefined
  readonly problems: readonly string[]
}

/** Asks `bun audit`, which asks the package registry. */
export async function advisories(bun: readonly string[] = ['bun']): Promise<Advisories> {
  const { stdout, stderr, exitCode } = await runIn([...bun, 'audit'])
  if (exitCode === 0) return { unreachable: undefined, problems: [] }
  const unreachable = /^error: (.*)$/m.exec(stderr)?.[1]
  if (unreachable !== undefined) return { unreachable, problems: [] }
  return { unreachable, problems: stdout.split('\n').filter((line) => line.trim() !== '') }
}
