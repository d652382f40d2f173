import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import satisfies from 'spdx-satisfies'
import { makeFolder } from '../support/folder.ts'
import { filesOfPage, type Manifest, type Part, partsInside, partsOf } from './bundled-packages.ts'
import { runtime } from './licenses.ts'
import { PROJECT, runIn, runWell } from './run.ts'
import { sbom } from './sbom.ts'

/** The licences that bundled packages may have. They ask for their text and for nothing more. */
export const ALLOWED_INSIDE = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT']

/** The licences that packages for building and testing may have. */
const ALLOWED_TO_DEVELOP = [...ALLOWED_INSIDE, 'CC-BY-3.0', 'CC0-1.0', 'MPL-2.0', 'Unlicense']

/** `bun run audit`: prints all problems of the dependencies, and exits with 1 if there are any. */
async function audit(): Promise<void> {
  using folder = makeFolder()
  const executable = join(folder.path, 'plantstore')
  await runWell(['bun', 'run', 'compile', '--outfile', executable])
  for (const [title, problems] of await problemsOf(await partsInside(), executable)) report(title, problems)
  report('advisories', await advisories())
}

function report(title: string, problems: readonly string[]): void {
  console.log(`${title}: ${problems.length === 0 ? 'nothing wrong' : ''}`.trimEnd())
  for (const problem of problems) console.log(`  ${problem}`)
  if (problems.length > 0) process.exitCode = 1
}

/** What is wrong with the lock file, the licences, and the bill of materials of an executable with these packages. */
export async function problemsOf(parts: readonly Part[], executable: string) {
  const bundled = parts.map(({ manifest }) => manifest)
  const installed = await installedManifests(PROJECT)
  const licenses = [...licenseProblems(bundled, ALLOWED_INSIDE), ...licenseProblems(installed, ALLOWED_TO_DEVELOP)]
  return [
    ['lock file', await lockProblems(PROJECT)],
    [`licences of ${parts.length} bundled and ${installed.length} installed packages`, licenses],
    ['bill of materials', await billProblems(await sbom(parts, 'audited', new Date(0)), executable)],
  ] as const
}

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

/** The packages that have no allowed licence. */
export const licenseProblems = (manifests: readonly Manifest[], allowed: readonly string[]): readonly string[] =>
  manifests
    .filter((manifest) => !isAllowed(licenseOf(manifest), allowed))
    .map((manifest) => `${manifest.name} ${manifest.version} is under ${licenseOf(manifest) || 'no licence'}`)

/** The manifests of all installed packages, also of nested ones. */
async function installedManifests(project: string): Promise<readonly Manifest[]> {
  const files = new Glob('**/package.json').scan({ cwd: join(project, 'node_modules'), followSymlinks: false })
  const manifests: Manifest[] = []
  for await (const file of files) {
    // Other files with this name are parts of a package.
    if (!/(?:^|\/node_modules\/)(?:@[^/]+\/)?[^/@]+\/package\.json$/.test(file)) continue
    manifests.push(await Bun.file(join(project, 'node_modules', file)).json())
  }
  return manifests
}

function isAllowed(license: string, allowed: readonly string[]): boolean {
  try {
    return satisfies(license, allowed)
  } catch {
    // The text is no SPDX expression.
    return false
  }
}

/** The SPDX expression. Old manifests have a list of licences instead, each of which may be chosen. */
const licenseOf = ({ license, licenses }: Manifest): string =>
  license ?? (licenses ?? []).map(({ type }) => type).join(' OR ')

interface Bill {
  readonly components: readonly { readonly group?: string; readonly name: string; readonly version: string }[]
}

/** Compares a bill of materials with the packages that an executable names. Returns a sentence for each difference. */
export async function billProblems(bill: string, executable: string): Promise<readonly string[]> {
  const listed = new Set((JSON.parse(bill) as Bill).components.map(nameOf))
  const inside = new Set([
    `bun@${(await runtime()).version}`,
    ...(await partsOf([...filesNamedIn(executable), ...(await filesOfPage())])).map(
      ({ name, version }) => `${name}@${version}`,
    ),
  ])
  return [
    ...[...inside].filter((name) => !listed.has(name)).map((name) => `${name} is inside, and not listed`),
    ...[...listed].filter((name) => !inside.has(name)).map((name) => `${name} is listed, and not inside`),
  ]
}

const nameOf = ({ group, name, version }: Bill['components'][number]): string =>
  `${group === undefined ? '' : `${group}/`}${name}@${version}`

const COMMENT = '\n// node_modules/'

/** The files in an executable. The bundler writes a comment with the name of each file before its code. */
function filesNamedIn(executable: string): readonly string[] {
  const bytes = readFileSync(executable)
  const files = new Set<string>()
  for (let at = bytes.indexOf(COMMENT); at >= 0; at = bytes.indexOf(COMMENT, at + 1)) {
    const end = bytes.indexOf('\n', at + 1)
    files.add(bytes.toString('utf8', at + '\n// '.length, end))
  }
  return [...files]
}

/**
 * The known vulnerabilities of the packages in the lock file, by `bun audit`, which asks the package registry. An audit for which the
 * registry had no answer has found nothing out, and that is a problem as well.
 */
export async function advisories(bun: readonly string[] = ['bun']): Promise<readonly string[]> {
  const { stdout, stderr, exitCode } = await runIn([...bun, 'audit'])
  if (exitCode === 0) return []
  const failure = /^error: (.*)$/m.exec(stderr)?.[1]
  if (failure !== undefined) return [`The registry did not say which vulnerabilities are known: ${failure}. Try again.`]
  return stdout.split('\n').filter((line) => line.trim() !== '')
}

if (import.meta.main) await audit()
