import { runIn } from './run.ts'

/** What is known of vulnerabilities in what the lock file names. */
export interface Advisories {
  /** Why nobody was asked, if so: that is no problem, but has to be said. */
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
