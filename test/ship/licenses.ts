import { join } from 'node:path'
import { licenseTextsOf, type Part, partsInside } from './bundled-packages.ts'
import { PROJECT } from './run.ts'

/** The text that `plantstore licenses` prints. It is a source file, so that every executable contains it. */
export const LICENSES_FILE = join(PROJECT, 'src/cli/third-party-licenses.txt')

const RULE = '='.repeat(80)

/** The licences of all bundled packages and of Bun, each text once. */
export async function thirdPartyLicenses(parts: readonly Part[]): Promise<string> {
  const bun = await runtime()
  const partsByText = new Map<string, string[]>()
  for (const part of parts) {
    const text = tidy((await textsOf(part)).join('\n\n'))
    partsByText.set(text, [...(partsByText.get(text) ?? []), nameOf(part)])
  }
  const sections = [...partsByText].map(([text, names]) => `${names.join('\n')}\n\n${text}`)
  return [`${INTRODUCTION}\n`, await bunSection(bun), ...sections].join(`\n${RULE}\n\n`)
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

async function bunSection({ version, statement, licenses }: Runtime): Promise<string> {
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

/** The runtime, by far the largest part of every executable. */
export interface Runtime {
  readonly version: string
  /** Its own statement about its licence and the licences of its libraries, in Markdown. */
  readonly statement: string
  /** The SPDX identifiers of the licences in that statement. */
  readonly licenses: readonly string[]
}

/** The names of licences in the statement, and their SPDX identifiers. */
const LICENSE_NAMES: readonly (readonly [RegExp, string])[] = [
  [/\bMIT\b/, 'MIT'],
  [/\bLGPL-2\b/, 'LGPL-2.0-only'],
  [/\bLGPL v2\.1/, 'LGPL-2.1-only'],
  [/\bApache 2\.0/, 'Apache-2.0'],
  [/\bBSD 2-Clause|\bBSD License\b/, 'BSD-2-Clause'],
  [/\bBSD 3-Clause/, 'BSD-3-Clause'],
  [/(?:^|[/ ])zlib\b/, 'Zlib'],
  [/\bICU license\b/, 'Unicode-3.0'],
  [/\bIJG\b/, 'IJG'],
  [/\bPNG Reference Library License v2/, 'libpng-2.0'],
  [/\bpublic domain\b/, 'blessing'],
]

/** The licences of libraries for which the statement has a link instead of a name. */
const BEHIND_LINKS: Readonly<Record<string, readonly string[]>> = {
  boringssl: ['Apache-2.0', 'ISC', 'OpenSSL'],
  libarchive: ['BSD-2-Clause'],
}

/** The Bun that `package.json` names. Its statement comes with the types of the same version. */
export async function runtime(): Promise<Runtime> {
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
  return { version, statement, licenses: licensesIn(statement) }
}

/** Throws if a row of the statement names a licence that is not known here. */
function licensesIn(statement: string): readonly string[] {
  const rows = [...statement.matchAll(/^\| *([^|]+?) *\| *([^|]+?) *\|$/gm)].filter(
    ([, , license = '']) => !/^(?:License|-+)$/.test(license),
  )
  const found = rows.map(([, library = '', license = '']) => {
    const linked = license.startsWith('[several') ? BEHIND_LINKS[/`([^`]+)`/.exec(library)?.[1] ?? ''] : undefined
    const names = linked ?? namesIn(license)
    if (names.length === 0) throw new Error(`Bun has ${library} under a licence that is not known here: ${license}`)
    return names
  })
  return [...new Set([...namesIn(statement.split('## Linked libraries')[0] ?? ''), ...found.flat()])].sort()
}

const namesIn = (text: string): readonly string[] =>
  LICENSE_NAMES.filter(([pattern]) => pattern.test(text)).map(([, name]) => name)

if (import.meta.main) {
  await Bun.write(LICENSES_FILE, await thirdPartyLicenses(await partsInside()))
}
