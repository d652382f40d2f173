import { createHash } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { archive } from './archive.ts'
import { partsInside } from './bundled-packages.ts'
import { describeCommit } from './commit.ts'
import { LICENSES_FILE, thirdPartyLicenses } from './licenses.ts'
import { PROJECT, runWell } from './run.ts'
import { sbom } from './sbom.ts'
import { runnerOf, TARGETS, type Target } from './targets.ts'

/** `bun run release`: makes all files of a release. One commit always results in the same bytes. */
const FOLDER = join(PROJECT, 'dist/release')

async function release(): Promise<void> {
  const parts = await partsInside()
  if ((await thirdPartyLicenses(parts)) !== (await Bun.file(LICENSES_FILE).text())) {
    throw new Error('the bundled packages have changed: run bun run licenses, and commit the new file')
  }
  const commit = await describeCommit(PROJECT)
  const version = `${manifest.version}+${commit.name}`
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const name = `plantstore-${manifest.version}`

  for (const target of TARGETS) {
    const executable = await compile(target, commit.name)
    console.log(`${target.name}: ${await tryOut(executable, target, version)}`)
    await write(`${name}-${target.name}.tar.gz`, await pack(`${name}-${target.name}`, executable, commit.madeAt))
  }
  await write(`${name}.cdx.json`, await sbom(parts, version, commit.madeAt))
  await Bun.write(join(FOLDER, 'SHA256SUMS'), sums.join(''))
  console.log(`${version} is in dist/release`)
}

/** Compiles as `bun run build` does. Returns the executable's path, which must be fixed because the executable contains it. */
async function compile({ name }: Target, commit: string): Promise<string> {
  const outfile = join('dist/release', name, 'plantstore')
  const define = `RELEASE_COMMIT=${JSON.stringify(commit)}`
  await runWell(['bun', 'run', 'compile', `--target=bun-${name}`, '--define', define, '--outfile', outfile])
  return join(PROJECT, outfile)
}

/** Checks the version of an executable if this machine can run it. Returns how it was run. */
async function tryOut(executable: string, target: Target, version: string): Promise<string> {
  const runner = runnerOf(target)
  if (runner === undefined) return `not run: this machine has another architecture and no ${target.emulator.packages}`
  const printed = (await runWell([...runner, executable, '--version'])).trim()
  if (printed !== version) throw new Error(`the executable for ${target.name} prints ${printed} instead of ${version}`)
  return runner.length === 0 ? 'run' : `run, by ${target.emulator.program}`
}

async function pack(folder: string, executable: string, modifiedAt: Date): Promise<Uint8Array> {
  const copied = ['README.md', 'LICENSE', 'CHANGELOG.md'].map(async (name) => ({
    path: `${folder}/${name}`,
    content: await Bun.file(join(PROJECT, name)).bytes(),
  }))
  const files = [
    { path: `${folder}/plantstore`, content: await Bun.file(executable).bytes(), isExecutable: true },
    { path: `${folder}/THIRD_PARTY_LICENSES`, content: await Bun.file(LICENSES_FILE).bytes() },
    ...(await Promise.all(copied)),
  ]
  return archive(files, modifiedAt)
}

const sums: string[] = []

/** Writes a file of the release, and adds its sum to SHA256SUMS. */
async function write(name: string, content: Uint8Array | string): Promise<void> {
  await Bun.write(join(FOLDER, name), content)
  sums.push(`${createHash('sha256').update(content).digest('hex')}  ${name}\n`)
}

await release()
