import type { parse } from '@babel/parser'
import { type Node, nodesOf } from '../calls/instrument.ts'

type Statement = ReturnType<typeof parse>['program']['body'][number]
type Loop = Extract<Statement, { readonly type: 'WhileStatement' | 'DoWhileStatement' | 'ForStatement' }>
type Expression = NonNullable<Loop['test']>

const LOOP = /^(?:While|DoWhile|For)Statement$/
const isLoop = (node: Node): node is Node & Loop => LOOP.test(node.type)
/** A pause after which something looks again, and a wait for anything else. */
const PAUSE = /\b(?:sleep(?:Sync)?|nextTurn|setImmediate|setTimeout|waitForTimeout|Atomics\.wait(?:Async)?)\(/
const WORK = /\bawait (?!(?:\w+\.)?(?:sleep|nextTurn|setImmediate|setTimeout|waitForTimeout|waitAsync)\()/
const CLOCK = /\b(?:performance|Date)\.now\(\)/
/** A function with its name, and what follows its name. */
const NAMED = /^(?:async )?(?:function )?(\w+)((?:: [^=]+)? = (?:async )?(?:\(|\w+ =>|function).*|\(.*)$/s

/**
 * Finds what looks again and again until something comes about, and has no limit. Returns its lines. A loop has a limit if it counts
 * something or compares a clock. A loop that asks something else each time, or works until another part sets a flag, is no poll.
 */
export function pollsIn(text: string): readonly string[] {
  const nodes = nodesOf(text)
  const textOf = ({ start, end }: Pick<Expression, 'start' | 'end'>) => text.slice(start ?? 0, end ?? 0)

  /** Whether this condition ends a loop. */
  const isLimited = (test: Expression | null | undefined, loop: string): boolean => {
    if (test?.type === 'LogicalExpression') {
      const sides = [test.left, test.right].map((side) => isLimited(side, loop))
      return test.operator === '&&' ? sides.includes(true) : !sides.includes(false)
    }
    if (test?.type === 'BinaryExpression' && /^[<>]=?$/.test(test.operator)) {
      const sides = [textOf(test.left), textOf(test.right)]
      return sides.some((side) => CLOCK.test(side) || (!side.includes('await') && changes(loop, side)))
    }
    const flag = test?.type === 'UnaryExpression' ? test.argument : test
    return flag?.type === 'Identifier' && WORK.test(loop) && !changes(loop, flag.name)
  }
  const isPollingLoop = (loop: Node & Loop, own: string): boolean => {
    const awaited = nodes
      .filter(({ type, start, end }) => type === 'AwaitExpression' && start >= loop.start && end <= loop.end)
      .map(textOf)
    const isEmpty = loop.body.type === 'EmptyStatement' || (loop.body.type === 'BlockStatement' && !loop.body.body[0])
    const isWaiting = awaited.length > 0 || PAUSE.test(own) || isEmpty
    const asksAnew = awaited.some((each) => WORK.test(each) && changes(own, each))
    const takesNext = loop.type === 'ForStatement' && /\.(?:shift|pop)\(\)$/.test(textOf(loop.update ?? {}))
    return isWaiting && !asksAnew && !takesNext && !isLimited(loop.test, own)
  }
  const isPoll = (node: Node): boolean => {
    // What is in a string is no code.
    const own = textOf(node).replace(/'[^'\n]*'/g, "''")
    if (isLoop(node)) return isPollingLoop(node, own)
    if (node.type === 'ForOfStatement') return /^for await \(.* of (?:\w+\.)?\w*[iI]nterval\(/.test(own)
    if (node.type === 'CallExpression') return /^(?:\w+\.)?setInterval\(.*\b(?:clearInterval|resolve)\b/s.test(own)
    if (!/^(?:FunctionDeclaration|VariableDeclarator)$/.test(node.type)) return false
    // A function that pauses and calls itself.
    const [, name, body = ''] = NAMED.exec(own) ?? []
    return PAUSE.test(body) && new RegExp(`(?<![.\\w'"\`])${name}\\b(?!:)`).test(body)
  }
  return nodes.filter(isPoll).map((node) => `${node.loc.start.line}: ${textOf(node).split('\n')[0]}`)
}

/** Whether a loop gives one of the variables in a text another value, or one of the lists another length. */
const changes = (loop: string, text: string): boolean =>
  (text.match(/(?<!\.)\b[a-z]\w*/gi) ?? []).some((name) => {
    const after = `\\+\\+|--| (?:[-+*/|&?%]{1,2})?= |\\.(?:push|add|set|shift|pop|splice)\\(`
    return new RegExp(`(?<!\\.|const |let |using )\\b${name}(?:${after})|(?:\\+\\+|--)${name}\\b`).test(loop)
  })
