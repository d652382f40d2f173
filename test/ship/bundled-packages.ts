import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { PROJECT, runWell } from './run.ts'

/** A package with code in the executable. */
export interface Part {
  readonly name: string
  /** The version of the bundled code. */
  readonly version: string
  /** An installed copy. If another package bundled this one, the copy can have another version. */
  readonly folder: string
  readonly manifest: Manifest
}

/** The fields of a package.json that are used here. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly licenses?: readonly { readonly type: string }[]
  readonly author?: string | { readonly name: string }
}

interface Metafile {
  readonly inputs: object
  readonly outputs: Readonly<Record<string, { readonly inputs: Readonly<Record<string, { bytesInOutput: number }>> }>>
}

interface SourceMap {
  readonly sources: readonly string[]
}

/** The folder of a file's package, the innermost one if packages are nested. */
const PACKAGE_FOLDER = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/
/** pnpm's folder of a package: its name, its version, and the packages that it was installed with. */
const PNPM_FOLDER = /\/\.pnpm\/(?:@[^/+]+\+)?[^/@]+@([^_/(]+)[^/]*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//

/**
 * All packages in the executable, sorted: the packages of the files that the bundler took over, and the packages in the source map of
 * a file that was itself a bundle.
 */
export const partsInside = async (): Promise<readonly Part[]> => partsOf(await filesInside())

/** The packages of some files, whose paths are relative to the project. */
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

/** All files in the executable. Of a file that only exports what others have, the bundler takes nothing. */
async function filesInside(): Promise<readonly string[]> {
  const { outputs } = await metafileOf(['run', 'compile'])
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs))
  const taken = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  return [...taken.map(([file]) => file), ...(await filesOfPage())]
}

/** The files of the page, which macros bundle and minify: no comment in the executable names them. */
export async function filesOfPage(): Promise<readonly string[]> {
  const files = ['main.tsx', 'oauth.ts', 'page.css'].map((name) => metafileOf(['build', `src/page/${name}`]))
  return (await Promise.all(files)).flatMap(({ inputs }) => Object.keys(inputs))
}

/** What the bundler says that it read and wrote in this run. */
async function metafileOf(args: readonly string[]): Promise<Metafile> {
  using folder = makeFolder()
  const metafile = join(folder.path, 'metafile.json')
  await runWell(['bun', ...args, '--outfile', join(folder.path, 'output'), `--metafile=${metafile}`])
  return await Bun.file(metafile).json()
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

/** The package of a source in a bundle, with its version if the path has one; `undefined` for the bundle's own sources. */
function originOf(source: string, file: string, bundle: Part) {
  const [, version, name] = PNPM_FOLDER.exec(source) ?? []
  if (name !== undefined) return { name, version }
  const path = normalize(join(relative(bundle.folder, dirname(file)), source))
  const other = PACKAGE_FOLDER.exec(path)?.[0]
  if (other !== undefined) return { name: other.replace(/^.*node_modules\//, ''), version: undefined }
  // A source beside the bundle's package is a package of the same workspace and scope. If the bundle has no scope, the source is
  // the bundle's own.
  const sibling = bundle.name.startsWith('@') ? /^\.\.\/([^./][^/]*)\//.exec(path)?.[1] : undefined
  return sibling === undefined ? undefined : { name: `${bundle.name.split('/')[0]}/${sibling}`, version: undefined }
}

/** The folder of a package as code in another folder would resolve it. */
function findInstalled(name: string, from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', name)
    if (existsSync(join(PROJECT, candidate, 'package.json'))) return candidate
    if (folder === '.') throw new Error(`${name} is in the executable, but not installed: its licence is unknown`)
  }
}

const manifestIn = (folder: string): Promise<Manifest> => Bun.file(join(PROJECT, folder, 'package.json')).json()

/** The licence files of a package. */
export async function licenseTextsOf({ folder }: Part): Promise<readonly string[]> {
  const names = readdirSync(join(PROJECT, folder)).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name))
  return Promise.all(names.sort().map((name) => Bun.file(join(PROJECT, folder, name)).text()))
}
