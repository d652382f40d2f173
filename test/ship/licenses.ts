import { join } from 'node:path'
import { licenseTextsOf, type Part, partsInside } from './bundled-packages.ts'
import { PROJECT } from './run.ts'

/** The text that `plantstore licenses` prints. It is a source file, so that every executable contains it. */
export const LICENSES_FILE = join(PROJECT, 'src/cli/third-party-licenses.txt')

const RULE = '='.repeat(80)

/** The licences of all bundled packages and of Bun, each text once. */
export async function thirdPartyLicenses(parts: readonly Part[]): Promise<string> {
  const partsByText = new Map<string, string[]>()
  for (const part of parts) {
    const text = tidy((await textsOf(part)).join('\n\n'))
    partsByText.set(text, [...(partsByText.get(text) ?? []), nameOf(part)])
  }
  const sections = [...partsByText].map(([text, names]) => `${names.join('\n')}\n\n${text}`)
  return [`${INTRODUCTION}\n`, await bunSection(), ...sections].join(`\n${RULE}\n\n`)
}

const INTRODUCTION = `The licences of all third-party code in the executable plantstore. Written by bun run licenses.`

const nameOf = ({ name, version, manifest }: Part): string =>
  `${name} ${version}${manifest.version === version ? '' : `, with the licence of its version ${manifest.version}`}`

/** The licence texts in a package, or the text of the licence that its manifest names. */
async function textsOf(part: Part): Promise<readonly string[]> {
  const texts = await licenseTextsOf(part)
  if (texts.length > 0) return texts
  const { name, license, author } = part.manifest
  if (license === undefined) throw new Error(`${name} names no licence`)
  const by = typeof author === 'object' ? author.name : author
  return [`(${name}, by ${by ?? 'its authors'}, brings no text, and names ${license}:)`, await spdxText(license)]
}

async function bunSection(): Promise<string> {
  const { version, statement, licenses } = await runtime()
  const texts = await Promise.all(licenses.map(async (id) => `${id}\n\n${tidy(await spdxText(id))}`))
  return [`Bun ${version}\n\n${statement}\n`, ...texts].join(`\n${'-'.repeat(80)}\n\n`)
}

/** SPDX's text of a licence. */
async function spdxText(id: string): Promise<string> {
  const file = Bun.file(join(PROJECT, 'node_modules/spdx-license-list/licenses', `${id}.json`))
  if (!(await file.exists())) throw new Error(`SPDX knows no licence ${id}`)
  const { licenseText }: { readonly licenseText: string } = await file.json()
  return licenseText
}

/** Removes spaces at the ends of lines and empty lines around a text. */
const tidy = (text: string): string =>
  `${text
    .replaceAll('\r\n', '\n')
    .replace(/[ \t]+$/gm, '')
    .trim()}\n`

/**
 * The licences that Bun's statement names, and those behind its links: BoringSSL is under Apache-2.0, ISC and OpenSSL, libarchive
 * under BSD-2-Clause. WebKit's JavaScriptCore is under the LGPL: users may change it, link Bun anew, as the statement says, and
 * build this project from its source.
 */
const RUNTIME_LICENSES = [
  ...['Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'IJG', 'ISC', 'LGPL-2.0-only', 'LGPL-2.1-only', 'MIT'],
  ...['OpenSSL', 'Unicode-3.0', 'Zlib', 'blessing', 'libpng-2.0'],
]
const STATEMENT_SHA256 = 'a3578d9a6ec67d7d6eec021b28198f1dc6113f901370bf7cf9641e4105cde73b'

/** The Bun that `package.json` names, by far the largest part of every executable. */
export async function runtime() {
  const { packageManager }: { readonly packageManager: string } = await Bun.file(join(PROJECT, 'package.json')).json()
  const version = packageManager.replace('bun@', '')
  const types = join(PROJECT, 'node_modules/bun-types')
  const manifest: { readonly version: string } = await Bun.file(join(types, 'package.json')).json()
  if (manifest.version !== version) {
    throw new Error(`bun-types ${manifest.version} do not have the licence of Bun ${version}: install the same version`)
  }
  const page = await Bun.file(join(types, 'docs/project/license.mdx')).text()
  const statement = page
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    // Replace links to packages by their names.
    .replace(/\[([^\]]+)\]\(https:[^)]*\/package\/[^)]*\)/g, '$1')
    .trim()
  if (Bun.SHA256.hash(statement, 'hex') !== STATEMENT_SHA256) {
    throw new Error('Bun states other licences: read the statement, and change RUNTIME_LICENSES and the sum')
  }
  return {
    version,
    /** Its own statement about its licence and the licences of its libraries, in Markdown. */
    statement,
    /** The SPDX identifiers of the licences in that statement. */
    licenses: RUNTIME_LICENSES,
  }
}

if (import.meta.main) {
  await Bun.write(LICENSES_FILE, await thirdPartyLicenses(await partsInside()))
}
