import { join } from 'node:path'
import { licenseTextsOf, type Part, partsInside } from './bundled-packages.ts'
import { PROJECT } from './run.ts'
import { type Runtime, runtime } from './runtime.ts'

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

if (import.meta.main) {
  await Bun.write(LICENSES_FILE, await thirdPartyLicenses(await partsInside()))
}
