import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { PROJECT, runWell } from './run.ts'

/** A package of which something is inside the executable. */
export interface Part {
  readonly name: string
  /** That of what is inside. */
  readonly version: string
  /** Where a copy of it is installed, and the manifest there; its version can be another where a bundle brought the part. */
  readonly folder: string
  readonly manifest: Manifest
}

/** What of a package.json is needed. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly licenses?: readonly { readonly type: string }[]
  readonly author?: string | { readonly name: string }
}

interface SourceMap {
  readonly sources: readonly string[]
}

/** The folder of the package that a file belongs to, the innermost if they are nested. */
const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/
/** How pnpm names the folder of a package: its version follows the name, and after that what it was installed with. */
const PNPM_FOLDER = /\/\.pnpm\/(?:@[^/+]+\+)?[^/@]+@([^_/(]+)[^/]*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//

/**
 * The packages inside the executable, by name and version: those of the files that the bundler read, and those that somebody
 * bundled into one of these files before it was published, as far as a source map beside the file says so.
 */
export const partsInside = async (): Promise<readonly Part[]> => partsOf(await filesInside())

/** The packages that files belong to, whose paths are relative to the project. */
export async function partsOf(files: readonly string[]): Promise<readonly Part[]> {
  const parts = new Map<string, Part>()
  for (const file of files) {
    const folder = PACKAGE_FOLDER.exec(file)?.[0]
    if (folder === undefined) continue
    const manifest = await manifestIn(folder)
    const own = { name: manifest.name, version: manifest.version, folder, manifest }
    for (const part of [own, ...(await partsOfBundle(file, own))]) parts.set(`${part.name}@${part.version}`, part)
  }
  return [...parts].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, part]) => part)
}

/** All files of which the executable is made, as the bundler lists them. */
async function filesInside(): Promise<readonly string[]> {
  using folder = makeFolder()
  const metafile = join(folder.path, 'metafile.json')
  await runWell(['bun', 'run', 'compile', '--outfile', join(folder.path, 'plantstore'), `--metafile=${metafile}`])
  const { inputs }: { readonly inputs: object } = await Bun.file(metafile).json()
  return Object.keys(inputs)
}

async function partsOfBundle(file: string, bundle: Part): Promise<readonly Part[]> {
  if (!existsSync(join(PROJECT, `${file}.map`))) return []
  const { sources }: SourceMap = await Bun.file(join(PROJECT, `${file}.map`)).json()
  const parts = new Map<string, Part>()
  for (const source of sources) {
    const origin = originOf(source, file, bundle)
    if (origin === undefined || parts.has(`${origin.name}@${origin.version}`)) continue
    const folder = findInstalled(origin.name, bundle.folder)
    const manifest = await manifestIn(folder)
    parts.set(`${origin.name}@${origin.version}`, {
      name: origin.name,
      version: origin.version ?? manifest.version,
      folder,
      manifest,
    })
  }
  return [...parts.values()]
}

/** The package from which a source came into a bundle, with its version where the path says it; none for the bundle's own. */
function originOf(source: string, file: string, bundle: Part) {
  const [, version, name] = PNPM_FOLDER.exec(source) ?? []
  if (name !== undefined) return { name, version }
  const path = normalize(join(relative(bundle.folder, dirname(file)), source))
  const other = PACKAGE_FOLDER.exec(path)?.[0]
  if (other !== undefined) return { name: other.replace(/^.*node_modules\//, ''), version: undefined }
  // A source beside the bundle's own package is a package of the same workspace, and of the same scope: without a scope it is
  // the bundle's own, by a path that held where it was made.
  const sibling = bundle.name.startsWith('@') ? /^\.\.\/([^./][^/]*)\//.exec(path)?.[1] : undefined
  return sibling === undefined ? undefined : { name: `${bundle.name.split('/')[0]}/${sibling}`, version: undefined }
}

/** The folder of a package as a file in another folder would find it. */
function findInstalled(name: string, from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name)
    if (existsSync(join(PROJECT, candidate, 'package.json'))) return candidate
    if (folder === '.') throw new Error(`${name} is inside the executable, but not installed: its licence is unknown`)
  }
}

const manifestIn = (folder: string): Promise<Manifest> => Bun.file(join(PROJECT, folder, 'package.json')).json()

/** The texts that come with a package under names that licences have. */
export async function licenseTextsOf({ folder }: Part): Promise<readonly string[]> {
  const names = readdirSync(join(PROJECT, folder)).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name))
  return Promise.all(names.sort().map((name) => Bun.file(join(PROJECT, folder, name)).text()))
}
