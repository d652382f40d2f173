import { readFileSync } from 'node:fs'
import { partsOf } from './bundled-packages.ts'
import { runtime } from './runtime.ts'

interface Bill {
  readonly components: readonly { readonly group?: string; readonly name: string; readonly version: string }[]
}

/** Compares a bill of materials with the packages that an executable names. Returns a sentence for each difference. */
export async function billProblems(bill: string, executable: string): Promise<readonly string[]> {
  const listed = new Set((JSON.parse(bill) as Bill).components.map(nameOf))
  const inside = new Set([
    `bun@${(await runtime()).version}`,
    ...(await partsOf(filesNamedIn(executable))).map(({ name, version }) => `${name}@${version}`),
  ])
  return [
    ...[...inside].filter((name) => !listed.has(name)).map((name) => `${name} is inside, and not listed`),
    ...[...listed].filter((name) => !inside.has(name)).map((name) => `${name} is listed, and not inside`),
  ]
}

const nameOf = ({ group, name, version }: Bill['components'][number]): string =>
  `${group === undefined ? '' : `${group}/`}${name}@${version}`

const COMMENT = '\n// node_modules/'

/** The files in an executable. The bundler writes a comment with the name of each file before its code. */
export function filesNamedIn(executable: string): readonly string[] {
  const bytes = readFileSync(executable)
  const files = new Set<string>()
  for (let at = bytes.indexOf(COMMENT); at >= 0; at = bytes.indexOf(COMMENT, at + 1)) {
    const end = bytes.indexOf('\n', at + 1)
    files.add(bytes.toString('utf8', at + '\n// '.length, end))
  }
  return [...files]
}
