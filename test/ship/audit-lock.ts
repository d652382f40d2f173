import { join } from 'node:path'
import { runIn } from './run.ts'

/** What is wrong with the lock file of a project: nothing may be installed that it does not name with a sum. */
export async function lockProblems(project: string): Promise<readonly string[]> {
  const { dependencies, devDependencies } = await Bun.file(join(project, 'package.json')).json()
  const lock = Bun.JSONC.parse(await Bun.file(join(project, 'bun.lock')).text()) as Lock
  return [
    ...inexactVersions({ ...dependencies, ...devDependencies }),
    ...packagesWithoutSum(lock),
    ...(await differences(project)),
  ]
}

interface Lock {
  /** Name and version, where from, what else, and a sum, for each. */
  readonly packages: Readonly<Record<string, readonly unknown[]>>
}

const inexactVersions = (dependencies: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(dependencies)
    .filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))
    .map(([name, version]) => `${name} is asked for as ${version}, and not in one exact version`)

const packagesWithoutSum = ({ packages }: Lock): readonly string[] =>
  Object.entries(packages)
    .filter(([, entry]) => !/^sha512-[\w+/]{86}==$/.test(String(entry.at(-1))))
    .map(([name]) => `${name} has no sum in bun.lock`)

/** What an install would change in the lock file. */
async function differences(project: string): Promise<readonly string[]> {
  const { exitCode, stderr } = await runIn(['bun', 'install', '--frozen-lockfile', '--dry-run'], project)
  return exitCode === 0 ? [] : stderr.split('\n').filter((line) => /^(?:error|note: dep)/.test(line))
}
