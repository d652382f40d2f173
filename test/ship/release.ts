import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import manifest from '../../package.json'
import type { Requirement } from '../support/requirement.ts'
import { partsInside } from './bundled-packages.ts'
import { signAdHoc, signatureProblems } from './code-signature.ts'
import { LICENSES_FILE, thirdPartyLicenses } from './licenses.ts'
import { makePackages } from './packages.ts'
import { checkPublisher, published } from './publisher.ts'
import { PROJECT, runWell } from './run.ts'
import { sbom } from './sbom.ts'
import { shareFiles } from './share.ts'

/**
 * The kinds of Linux machines with released executables, all of them with glibc, and a program that runs these executables on other
 * machines. `name` is the compiler's, `arch` is that of `process.arch`, the packages are Debian's.
 */
export const TARGETS = [
  {
    name: 'linux-x64',
    arch: 'x64',
    emulator: { program: 'qemu-x86_64', libraries: '/usr/x86_64-linux-gnu', packages: 'qemu-user libc6-amd64-cross' },
  },
  {
    name: 'linux-arm64',
    arch: 'arm64',
    emulator: { program: 'qemu-aarch64', libraries: '/usr/aarch64-linux-gnu', packages: 'qemu-user libc6-arm64-cross' },
  },
]

/** The kinds of machines with macOS, by the compiler's names. */
export const MAC_TARGETS = ['darwin-arm64', 'darwin-x64']

type Target = (typeof TARGETS)[number]

/** `bun run release`: makes all files of a release. One commit always results in the same bytes. */
const FOLDER = join(PROJECT, 'dist/release')

/** The documents in an archive, beside the folders `docs`, `contrib` and `share`. */
const DOCUMENTS = ['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'SECURITY.md']
const FOLDERS = ['docs/**/*.md', 'docs/pictures/*.{png,svg}', 'contrib/**/*.*']
const LICENSES = 'THIRD_PARTY_LICENSES'

async function release(): Promise<void> {
  checkPublisher()
  const parts = await partsInside()
  if ((await thirdPartyLicenses(parts)) !== (await Bun.file(LICENSES_FILE).text())) {
    throw new Error('the bundled packages have changed: run bun run licenses, and commit the new file')
  }
  const commit = await describeCommit(PROJECT)
  const version = `${manifest.version}+${commit.name}`
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const name = `plantstore-${manifest.version}`
  const files: string[] = []

  for (const target of TARGETS) {
    const folder = `${name}-${target.name}`
    const executable = await compile(target, folder, commit.name)
    console.log(`${target.name}: ${await tryOut(executable, target, version)}`)
    await pack(folder, commit.madeAt)
    files.push(`${folder}.tar.gz`)
    const from = { folder: join(FOLDER, folder), into: FOLDER, arch: target.arch }
    files.push(...(await makePackages({ ...from, version: manifest.version, madeAt: commit.madeAt })))
  }
  for (const target of MAC_TARGETS) {
    const folder = `${name}-${target}`
    signForMac(await compile({ name: target }, folder, commit.name))
    await pack(folder, commit.madeAt)
    files.push(`${folder}.tar.gz`)
  }
  await Bun.write(join(FOLDER, `${name}.cdx.json`), await sbom(parts, version, commit.madeAt))
  files.push(`${name}.cdx.json`)
  await Bun.write(join(FOLDER, 'SHA256SUMS'), await runWell(['sha256sum', ...files], FOLDER))
  console.log(`${version} is in dist/release`)
}

/** Compiles as `bun run build` does. Returns the executable's path, which must be fixed because the executable contains it. */
async function compile({ name }: Pick<Target, 'name'>, folder: string, commit: string): Promise<string> {
  const outfile = join('dist/release', folder, 'plantstore')
  const define = `RELEASE_COMMIT=${JSON.stringify(commit)}`
  await runWell(['bun', 'run', 'compile', `--target=bun-${name}`, '--define', define, '--outfile', outfile])
  return join(PROJECT, outfile)
}

/** Signs an executable for macOS, which Bun 1.4.5 does for arm64 alone. A Mac refuses one whose signature does not fit. */
function signForMac(executable: string): void {
  const compiled = readFileSync(executable)
  if (signatureProblems(compiled).length > 0) writeFileSync(executable, signAdHoc(compiled))
}

/** Checks the version of an executable if this machine can run it. Returns how it was run. */
async function tryOut(executable: string, target: Target, version: string): Promise<string> {
  const runner = runnerOf(target)
  if (runner === undefined) return `not run: this machine has another architecture and no ${target.emulator.packages}`
  const printed = (await runWell([...runner, executable, '--version'])).trim()
  if (printed !== version) throw new Error(`the executable for ${target.name} prints ${printed} instead of ${version}`)
  return runner.length === 0 ? 'run' : `run, by ${target.emulator.program}`
}

/**
 * Adds the documents to a folder with an executable, and packs all into a compressed archive: always the same bytes for the same
 * files and time. The files belong to root. The gzip header has no time and no name.
 */
async function pack(folder: string, modifiedAt: Date): Promise<void> {
  const names = await addDocuments(join(FOLDER, folder), modifiedAt)
  const files = [...names, 'plantstore'].map((name) => join(folder, name))
  const attributes = ['--format=ustar', '--owner=root:0', '--group=root:0', `--mtime=${modifiedAt.toISOString()}`]
  // Higher levels take several times as long to save one percent.
  const compressed = ['--use-compress-program=gzip --no-name -5', `--file=${folder}.tar.gz`]
  await runWell(['tar', '--create', ...attributes, ...compressed, ...files], FOLDER)
}

/** Puts the documents, `contrib`, `share` and the licences into a folder. Returns their names. */
export async function addDocuments(folder: string, committedAt: Date): Promise<readonly string[]> {
  const found = FOLDERS.flatMap((pattern) => [...new Glob(pattern).scanSync(PROJECT)]).sort()
  const copied = [...DOCUMENTS, ...found, LICENSES]
  for (const name of copied) {
    const file = Bun.file(name === LICENSES ? LICENSES_FILE : join(PROJECT, name))
    await Bun.write(join(folder, name), name.endsWith('.png') ? file : published(await file.text()))
  }
  const share = await shareFiles(committedAt)
  for (const [name, text] of Object.entries(share)) await Bun.write(join(folder, name), text)
  const names = [...copied, ...Object.keys(share)]
  for (const name of names) chmodSync(join(folder, name), 0o644)
  // nfpm packs folders with their own modes and times.
  const folders = ['find', '.', '-type', 'd', '-exec', 'chmod', '755', '{}', '+']
  await runWell([...folders, '-exec', 'touch', `--date=${committedAt.toISOString()}`, '{}', '+'], folder)
  return names
}

/** The command that runs an executable for a target on this machine; `undefined` if no command can. */
export function runnerOf({ arch, emulator }: Target): readonly string[] | undefined {
  if (process.platform !== 'linux') return undefined
  if (arch === process.arch) return []
  if (Bun.which(emulator.program) === null || !existsSync(emulator.libraries)) return undefined
  return [emulator.program, '-L', emulator.libraries]
}

/** What this machine needs to run the executables for a target. */
export const runnerFor = (target: Target): Requirement => ({
  missing: `${target.emulator.packages} are missing, to run executables for ${target.name}`,
  isMet: () => runnerOf(target) !== undefined,
})

/** The commit of a folder, marked as dirty if files have changed, and the commit's time. */
export async function describeCommit(folder: string) {
  const shown = await runWell(['git', 'show', '--no-patch', '--abbrev=12', '--format=%h %cI', 'HEAD'], folder)
  const [name = '', time = ''] = shown.trim().split(' ')
  const changes = await runWell(['git', 'status', '--porcelain'], folder)
  return { name: changes === '' ? name : `${name}.dirty`, madeAt: new Date(time) }
}

if (import.meta.main) await release()
