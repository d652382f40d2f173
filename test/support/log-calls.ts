import { resolve } from 'node:path'
import { Glob } from 'bun'

const SRC = resolve(import.meta.dir, '../../src')

/** A line that the program can log. `…` stands for what is known only when it is logged. */
interface LogCall {
  readonly level: string
  readonly message: string
  readonly fields: readonly string[]
}

const OBJECT = String.raw`\{(?:[^{}]|\{[^{}]*\})*\}`
const TEXT = "'[^']*'|`[^`]*`"
/** A call of the logger, or an event of a store, which `serve` logs. Fields and message may be constants of the file. */
const CALL = new RegExp(
  String.raw`log\.(fatal|error|warn|info|debug)\(\s*(?:(${OBJECT}|\w+),)?\s*(${TEXT}),?\s*\)|level: '(\w+)',\s*message(?:: (${TEXT}))?,\s*sizes: (${OBJECT})`,
  'g',
)

/** All lines that the program can log, as its source says. */
export async function logCalls(): Promise<readonly LogCall[]> {
  const files = [...new Glob('**/*.ts').scanSync(SRC)]
  const sources = await Promise.all(files.map((file) => Bun.file(resolve(SRC, file)).text()))
  return sources.flatMap((source) =>
    [...source.matchAll(CALL)].map(([, logged, given = '{}', text, told, event = 'message', sizes]) => ({
      level: logged ?? told ?? '',
      message: messageOf(text ?? event, source),
      fields: fieldsOf(sizes ?? given, source),
    })),
  )
}

/** The value of a constant in a file, as it is written there. */
const constant = (name: string, source: string): string | undefined =>
  new RegExp(String.raw`const ${name} =\s*(${OBJECT}|${TEXT})`).exec(source)?.[1]

function messageOf(written: string, source: string): string {
  const text = written === 'message' ? (constant('message', source) ?? '') : written
  return text.slice(1, -1).replace(/\$\{([^}]*)\}/g, (_, name: string) => constant(name, source)?.slice(1, -1) ?? '…')
}

/** The names of the fields of an object. */
function fieldsOf(written: string, source: string): readonly string[] {
  const object = written.startsWith('{') ? written : (constant(written, source) ?? '{}')
  const flat = object.slice(1, -1).replace(/\((?:[^()]|\([^()]*\))*\)/g, '')
  return flat.split(',').flatMap((field) => field.split(':')[0]?.trim() || [])
}
