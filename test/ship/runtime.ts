import { join } from 'node:path'
import { PROJECT } from './run.ts'

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
