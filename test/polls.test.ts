import { describe, expect, test } from 'bun:test'
import type { parse } from '@babel/parser'
import { Glob } from 'bun'
import { AppError } from '../src/error.ts'
import { type Node, nodesOf } from './calls/instrument.ts'
import { rejectionOf } from './store/fixtures.ts'
import { until } from './support/until.ts'

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
function pollsIn(text: string): readonly string[] {
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

/** Every form in which a test can look again and again without a limit. */
const POLLS = [
  'while (!isDone()) await Bun.sleep(5)',
  'while (!(await isDone()));',
  'while ((await statusOf(server)) === 503);',
  'while (lines.length === 0) await nextTurn()',
  'while (!isOver) await Bun.sleep(5)',
  'while (!isDone()) {}',
  'while (true) {\n  if (await isDone()) break\n}',
  'while (isBusy || looks++ < 9) await Bun.sleep(5)',
  'do {\n  await Bun.sleep(5)\n} while (!isDone())',
  'for (;;) {\n  if (isDone()) break\n  await Bun.sleep(5)\n}',
  'for (let now = await look(); now !== 3; now = await look()) {}',
  'for await (const _ of setInterval(5)) if (isDone()) break',
  'const timer = setInterval(() => isDone() && clearInterval(timer), 5)',
  'await new Promise((resolve) => setInterval(() => isDone() && resolve(), 5))',
  'const look = () => (isDone() ? resolve() : setTimeout(look, 5))',
  'const look = async () => {\n  if (isDone()) return\n  await Bun.sleep(5)\n  await look()\n}',
  'async function look() {\n  await Bun.sleep(5)\n  return isDone() || look()\n}',
]

/** What ends by itself, or goes on to something else, or works until it is told to end. */
const OTHERS = [
  "await until('it is done', isDone)",
  'for (let id = 0; id < 9; id++) await create(id)',
  'while (created < 9 && (await create()) === 200) created++',
  'while (performance.now() < endMs) await create()',
  'for (let row = rows.shift(); row !== undefined; row = rows.shift()) await ask(row)',
  'for (let query = first; query !== undefined; ) query = nextOf(await list(query))',
  'while (!isOver) {\n  await create()\n  await Bun.sleep(1)\n}',
  'const timer = setInterval(() => samples.push(sample()), 5)',
  'for await (const part of stream) text += part',
]

describe('a poll without a limit', () => {
  test.each(POLLS)('is found: %j', (text) => expect(pollsIn(text)).toHaveLength(1))
  test.each(OTHERS)('is not: %j', (text) => expect(pollsIn(text)).toEqual([]))
})

test.each([
  ['tests', '**/*.ts', pollsIn],
  ['transcripts', '**/*.{txt,sh}', (text: string) => text.match(/.*\b(?:until|while)\b.*\bdo\b.*\bsleep\b.*/g) ?? []],
] as const)('%s wait for a condition with `until`, which has a name and a limit', async (_, pattern, find) => {
  // `bun run conformance` installs packages in a folder of tests.
  const isOurs = (file: string) => !file.includes('node_modules/')
  const files = [...new Glob(pattern).scanSync(import.meta.dir)].filter(isOurs).sort()
  const found = files.map(async (file) => {
    const polls = find(await Bun.file(`${import.meta.dir}/${file}`).text())
    return polls.map((poll) => `${file}:${poll}`)
  })

  expect((await Promise.all(found)).flat()).toEqual([])
})

test('a wait that is over says what it saw last, and a refusal all that it says', async () => {
  const answers = [
    { status: 503, body: 'early' },
    { status: 503, body: 'the disk is full' },
  ]
  const wait = until('it is ready', (see) => see(answers.shift() ?? { body: 'late' }).body === 'late', { limitMs: 0 })
  const refuse = () => Promise.reject(new AppError('store_failed', { message: 'It is gone.', outcomeIsUnknown: true }))

  expect(await rejectionOf(wait)).toMatchObject({
    message: 'it never came about that it is ready; seen last:\n{\n  status: 503,\n  body: "early",\n}',
  })
  expect(await rejectionOf(refuse())).toMatchObject({
    kind: 'store_failed',
    message: 'It is gone.',
    outcomeIsUnknown: true,
  })
})

/** A failure would show two numbers, and not why the answer is another one. */
test('a status is compared with its body', async () => {
  const files = [...new Glob('**/*.ts').scanSync(import.meta.dir)].sort()
  const found = files.map(async (file) => {
    const text = await Bun.file(`${import.meta.dir}/${file}`).text()
    return (text.match(/expect\((?:.*\.)?status\)+\.to(?:Be|Equal)\(/g) ?? []).map((line) => `${file}: ${line}`)
  })

  expect((await Promise.all(found)).flat()).toEqual([])
})
