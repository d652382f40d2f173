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
  readonly loc: { readonly start: { readonly line: number } }
  readonly body?: unknown
}

/** How a file of src is parsed. */
export const SYNTAX: ParserOptions = {
  sourceType: 'module',
  plugins: ['typescript', 'jsx', 'explicitResourceManagement'],
}
const FUNCTIONS = [
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  'ObjectMethod',
  'ClassMethod',
]

/** Adds a call at the entry of each function of a file. */
export function instrument(text: string, file: string): string {
  const insertions: { readonly at: number; readonly text: string }[] = []
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) visit(each)
    if (!isNode(node)) return
    if (FUNCTIONS.includes(node.type) && isNode(node.body)) {
      const { start, end } = node.body
      const call = `called('${file}:${node.loc.start.line}')`
      if (node.body.type === 'BlockStatement') insertions.push({ at: start + 1, text: ` ${call};` })
      else insertions.push({ at: start, text: `(${call}, ` }, { at: end, text: ')' })
    }
    for (const value of Object.values(node)) visit(value)
  }
  visit(parse(text, SYNTAX).program)
  // From the end of the file, so that earlier places stay. Insertions at one place are the same closing parenthesis.
  return insertions
    .sort((a, b) => b.at - a.at)
    .reduce((done, { at, text }) => done.slice(0, at) + text + done.slice(at), text)
}

export const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value
