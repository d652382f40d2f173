import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ParserOptions, parse } from '@babel/parser'

/** Bundled for browsers or by macros: no test in a browser can write a file. */
export const LEFT_OUT = 'page/'

/** Each call, or only the first one of each function in a thread. The latter leaves out programs that cannot write the file. */
type Recorded = 'each call' | 'first calls'

const traceOf = (log: string, recorded: Recorded) => `import { appendFileSync } from 'node:fs'
const write = (name) => appendFileSync(${JSON.stringify(log)}, name + '\\n')
const seen = new Set()
const writeFirst = (name) => {
  if (seen.has(name)) return
  seen.add(name)
  try { write(name) } catch {}
}
export const called = ${recorded === 'each call' ? 'write' : 'writeFirst'}
`

/** Changes the folder `src` of a project: each of its functions first writes its name and its place to the file `log`. */
export function instrumentSource(project: string, log: string, recorded: Recorded): void {
  const trace = join(project, 'trace/trace.ts')
  mkdirSync(join(project, 'trace'))
  writeFileSync(trace, traceOf(log, recorded))
  for (const file of sourceFiles(project)) {
    if (file.startsWith(LEFT_OUT)) continue
    const path = join(project, 'src', file)
    const text = instrument(readFileSync(path, 'utf8'), file)
    writeFileSync(path, `import { called } from ${JSON.stringify(trace)}\n${text}`)
  }
}

/** The files of src with code, in order. */
export const sourceFiles = (project: string): readonly string[] =>
  [...new Bun.Glob('**/*.{ts,tsx}').scanSync(join(project, 'src'))].filter((file) => !file.endsWith('.d.ts')).sort()

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
  const insertions = functionsOf(text).flatMap(({ loc, body }) => {
    const { type, start, end } = body
    const call = `called('${file}:${loc.start.line}')`
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

/** All functions of a file, each before those inside it. */
export const functionsOf = (text: string): readonly (Node & { readonly body: Node })[] =>
  nodesOf(text).flatMap((node) => (FUNCTION.test(node.type) && isNode(node.body) ? [{ ...node, body: node.body }] : []))

/** All nodes of a file, each before those inside it. With `isLeftOut` some are left out, with all inside. */
export function nodesOf(text: string, isLeftOut = (_: Node) => false): readonly Node[] {
  const nodesIn = (value: unknown): readonly Node[] => {
    if (Array.isArray(value)) return value.flatMap(nodesIn)
    return isNode(value) && !isLeftOut(value) ? [value, ...Object.values(value).flatMap(nodesIn)] : []
  }
  return nodesIn(parse(text, SYNTAX).program)
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value
