import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { type ParserOptions, parse } from '@babel/parser'

const ROOT = join(import.meta.dir, '../..')
/** Bundled for browsers or by macros: no request of the API comes there. */
const LEFT_OUT = 'http/page'
/** The file that the calls are written to. A second thread writes to one of its own. */
const TRACE = `import { appendFileSync } from 'node:fs'
const log = process.env.CALLS_LOG + (Bun.isMainThread ? '' : '.thread')
export const called = (name) => appendFileSync(log, name + '\\n')
`

/**
 * Copies the source into a folder. Each function of the copy first writes its name and its place to the file `CALLS_LOG`, or
 * in the thread that writes to `CALLS_LOG.thread`. Returns the path of the copy's main.ts.
 */
export function copyInstrumented(folder: string): string {
  const source = join(ROOT, 'src')
  cpSync(source, join(folder, 'src'), { recursive: true })
  for (const name of ['package.json', 'tsconfig.json']) cpSync(join(ROOT, name), join(folder, name))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  mkdirSync(join(folder, 'trace'))
  const trace = join(folder, 'trace/trace.ts')
  writeFileSync(trace, TRACE)
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!/(?<!\.d)\.tsx?$/.test(name) || name.startsWith(LEFT_OUT)) continue
    const path = join(folder, 'src', name)
    const text = instrument(readFileSync(path, 'utf8'), relative(join(folder, 'src'), path))
    writeFileSync(path, `import { called } from ${JSON.stringify(trace)}\n${text}`)
  }
  return join(folder, 'src/main.ts')
}

/** What a walk needs of a node of Babel's syntax tree (https://babeljs.io/docs/babel-parser#output). */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly loc: Readonly<Record<'start' | 'end', { readonly line: number }>>
  readonly body?: unknown
}

/** How a file of src is parsed. */
const SYNTAX: ParserOptions = {
  sourceType: 'module',
  plugins: ['typescript', 'jsx', 'explicitResourceManagement'],
}
export const FUNCTION = /^(?:Function(?:Declaration|Expression)|ArrowFunctionExpression|(?:Object|Class)Method)$/

/** Adds a call at the entry of each function of a file. */
export function instrument(text: string, file: string): string {
  const insertions = nodesOf(text).flatMap((node) => {
    if (!FUNCTION.test(node.type) || !isNode(node.body)) return []
    const { type, start, end } = node.body
    const call = `called('${file}:${node.loc.start.line}')`
    if (type === 'BlockStatement') return [{ at: start + 1, text: ` ${call};` }]
    return [
      { at: start, text: `(${call}, ` },
      { at: end, text: ')' },
    ]
  })
  // From the end of the file, so that earlier places stay. Insertions at one place are the same closing parenthesis.
  return insertions
    .sort((a, b) => b.at - a.at)
    .reduce((done, { at, text }) => done.slice(0, at) + text + done.slice(at), text)
}

/** All nodes of a file, each before those inside it. With `isLeftOut` some are left out, with all inside. */
export function nodesOf(text: string, isLeftOut = (_: Node) => false): readonly Node[] {
  const nodesIn = (value: unknown): readonly Node[] => {
    if (Array.isArray(value)) return value.flatMap(nodesIn)
    return isNode(value) && !isLeftOut(value) ? [value, ...Object.values(value).flatMap(nodesIn)] : []
  }
  return nodesIn(parse(text, SYNTAX).program)
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value
