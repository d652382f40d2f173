import { join } from 'node:path'
import { Glob } from 'bun'
import satisfies from 'spdx-satisfies'
import type { Manifest } from './bundled-packages.ts'

/** The licences that bundled packages may have. They ask for their text and for nothing more. */
export const ALLOWED_INSIDE = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT']

/**
 * The licences that parts of the runtime may have, too. WebKit's JavaScriptCore is under the LGPL: users may change it, link Bun
 * anew, as `plantstore licenses` says, and build this project from its source.
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

/** The licences that packages for building and testing may have. */
export const ALLOWED_TO_DEVELOP = [...ALLOWED_INSIDE, 'CC-BY-3.0', 'CC0-1.0', 'Unlicense']

/** The packages that have no allowed licence. */
export const licenseProblems = (manifests: readonly Manifest[], allowed: readonly string[]): readonly string[] =>
  manifests
    .filter((manifest) => !isAllowed(licenseOf(manifest), allowed))
    .map((manifest) => `${manifest.name} ${manifest.version} is under ${licenseOf(manifest) || 'no licence'}`)

/** The manifests of all installed packages, also of nested ones. */
export async function installedManifests(project: string): Promise<readonly Manifest[]> {
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
