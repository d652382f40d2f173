import { type Node, nodesOf } from '../calls/instrument.ts'

/** One change of a text, which a test should find. */
export interface Mutation {
  readonly line: number
  /** What the change does, like `negated: isOpen`. */
  readonly does: string
  readonly start: number
  readonly end: number
  /** The new text from `start` to `end`. */
  readonly text: string
}

/** The comparisons, each next to its opposite. */
const COMPARISONS = ['<', '>=', '>', '<=', '===', '!==']

/** All changes of a file, in the order of their places. Types stay as they are. */
export const mutationsOf = (source: string): readonly Mutation[] =>
  nodesOf(source, ({ type }) => /^TS(?!As|Satisfies|NonNull)/.test(type))
    .flatMap((node) => changesOf(node as AnyNode, source))
    .sort((a, b) => a.start - b.start || a.end - b.end)

/** The source with a change. */
export const applyMutation = (source: string, { start, end, text }: Mutation): string =>
  source.slice(0, start) + text + source.slice(end)

/** The parts of nodes that changes need. */
interface AnyNode extends Node {
  readonly operator: string
  readonly value: unknown
  readonly left: AnyNode
  readonly right: AnyNode
  readonly test: AnyNode | null
  readonly argument: Node
}

function changesOf(node: AnyNode, source: string): readonly Mutation[] {
  const textOf = ({ start, end }: Pick<Node, 'start' | 'end'>) => source.slice(start, end)
  const change = (what: string, text: string, { start, end, loc }: Node = node): Mutation => {
    return { line: loc.start.line, does: `${what}: ${oneLine(textOf({ start, end }))}`, start, end, text }
  }
  // To negate a comparison is to turn it.
  const negate = (tests: readonly (AnyNode | null)[]) =>
    tests.flatMap((test) =>
      test === null || COMPARISONS.includes(test.operator) ? [] : [change('negated', `!(${textOf(test)})`, test)],
    )
  switch (node.type) {
    case 'BinaryExpression': {
      const { operator, left } = node
      const turned = COMPARISONS[COMPARISONS.indexOf(operator) ^ 1]
      if (turned === undefined) return []
      const after = textOf({ start: left.end, end: node.end }).replace(operator, turned)
      return [change(`turned to ${turned}`, source.slice(node.start, left.end) + after)]
    }
    case 'LogicalExpression':
      return node.operator === '??' ? [] : negate([node.left, node.right])
    case 'IfStatement':
    case 'WhileStatement':
    case 'ForStatement':
    case 'ConditionalExpression':
      return negate([node.test])
    case 'ExpressionStatement':
    case 'ThrowStatement':
      return [change('left out', ';')]
    case 'AwaitExpression':
      return [change('not awaited', textOf(node.argument))]
    case 'NumericLiteral':
      return [change('off by one', String(Number(node.value) + 1))]
    case 'BigIntLiteral':
      return [change('off by one', `${BigInt(String(node.value)) + 1n}n`)]
    default:
      return []
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').replace(/^(.{59})..+$/, '$1…')
