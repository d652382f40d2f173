import { join } from 'node:path'
import { runIn } from './run.ts'

/** The problems of a project's lock file. Every installed package must be in it, with an exact version and a sum. */
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
  /** The name and version, the registry, further facts and the sum of each package. */
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

/** The changes that an install would make to the lock file. */
async function differences(project: string): Promise<readonly string[]> {
  const { exitCode, stderr } = await runIn(['bun', 'install', '--frozen-lockfile', '--dry-run'], project)
  return exitCode === 0 ? [] : stderr.split('\n').filter((line) => /^(?:error|note: dep)/.test(line))
}
