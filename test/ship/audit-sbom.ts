import { readFileSync } from 'node:fs'
import { partsOf } from './inside.ts'
import { runtime } from './runtime.ts'

interface Bill {
  readonly components: readonly { readonly group?: string; readonly name: string; readonly version: string }[]
}

/** In what way a bill of materials is not that of an executable, as the executable itself says what it is made of. */
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

/** The files that the comments name which the bundler writes before what it took from each. */
export function filesNamedIn(executable: string): readonly string[] {
  const bytes = readFileSync(executable)
  const files = new Set<string>()
  for (let at = bytes.indexOf(COMMENT); at >= 0; at = bytes.indexOf(COMMENT, at + 1)) {
    const end = bytes.indexOf('\n', at + 1)
    files.add(bytes.toString('utf8', at + '\n// '.length, end))
  }
  return [...files]
}
