import { join } from 'node:path'
import { Glob } from 'bun'
import satisfies from 'spdx-satisfies'
import type { Manifest } from './inside.ts'

/** Licences of what may be inside the executable: they ask for their text, and for nothing more. */
export const ALLOWED_INSIDE = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT']

/**
 * Licences of what the runtime links besides. Under the LGPL is WebKit's JavaScriptCore: who changes it may link Bun anew, as
 * `plantstore licenses` says, and build this from its source.
 */
export const ALLOWED_IN_RUNTIME = [
  ...ALLOWED_INSIDE,
  'IJG',
  'LGPL-2.0-only',
  'LGPL-2.1-only',
  'OpenSSL',
  'Unicode-3.0',
  'Zlib',
  'blessing',
  'libpng-2.0',
]

/** Licences of what is only used to make and test it. */
export const ALLOWED_TO_DEVELOP = [...ALLOWED_INSIDE, 'CC-BY-3.0', 'CC0-1.0', 'Unlicense']

/** Which packages have another licence than those, or none. */
export const licenseProblems = (manifests: readonly Manifest[], allowed: readonly string[]): readonly string[] =>
  manifests
    .filter((manifest) => !isAllowed(licenseOf(manifest), allowed))
    .map((manifest) => `${manifest.name} ${manifest.version} is under ${licenseOf(manifest) || 'no licence'}`)

/** The manifests of all packages that are installed, nested ones included. */
export async function installedManifests(project: string): Promise<readonly Manifest[]> {
  const files = new Glob('**/package.json').scan({ cwd: join(project, 'node_modules'), followSymlinks: false })
  const manifests: Manifest[] = []
  for await (const file of files) {
    // Others are inside a package.
    if (!/(?:^|\/node_modules\/)(?:@[^/]+\/)?[^/@]+\/package\.json$/.test(file)) continue
    manifests.push(await Bun.file(join(project, 'node_modules', file)).json())
  }
  return manifests
}

function isAllowed(license: string, allowed: readonly string[]): boolean {
  try {
    return satisfies(license, allowed)
  } catch {
    // It is no expression.
    return false
  }
}

/** The SPDX expression; one old way to say it is a list of objects, of which any may be chosen. */
const licenseOf = ({ license, licenses }: Manifest): string =>
  license ?? (licenses ?? []).map(({ type }) => type).join(' OR ')
