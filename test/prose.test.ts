import { describe, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { Glob } from 'bun'
import { OPTIONS } from '../src/config.ts'
import { ERRORS } from '../src/http/answers.ts'
import { openApiDocument } from '../src/http/docs/document.ts'
import { leafCommands } from './support/commands.ts'
import { PAGES, readPage } from './support/docs.ts'
import { flowOf, paragraphsInCells, problemsOf, sentencesOfMarkdown } from './support/prose.ts'

const SRC = resolve(import.meta.dir, '../src')

const problemsOfAll = (texts: readonly string[]): readonly string[] =>
  texts.flatMap(sentencesOfMarkdown).flatMap((sentence) => problemsOf(sentence).map((each) => `${each}: ${sentence}`))

/** All texts of the OpenAPI document for people. */
function wordsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    (key === 'description' || key === 'summary') && typeof inner === 'string' ? [inner] : wordsIn(inner),
  )
}

/** The texts in the code that are sentences: messages, help and log lines. `x` stands for a value. */
async function messages(): Promise<readonly string[]> {
  const sources = [...new Glob('**/*.{ts,tsx}').scanSync(SRC)].map((file) => Bun.file(resolve(SRC, file)).text())
  return (await Promise.all(sources)).flatMap((source) => {
    const code = source.replace(/^\s*(?:\/\*\*|\*|\/\/).*$/gm, '')
    const texts = [...code.matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)].map(([, a, b]) => a ?? b ?? '')
    return texts.filter((text) => /^[A-Z].*\w \w.*[.:]/.test(text)).map((text) => text.replace(/\$\{[^}]*\}/g, 'x'))
  })
}

describe('the prose', () => {
  test.each(PAGES)('of %s is plain', async (page) => {
    expect(problemsOfAll([await readPage(page)])).toEqual([])
  })

  test('of the OpenAPI document is plain', async () => {
    expect(problemsOfAll(wordsIn(await openApiDocument(undefined)))).toEqual([])
  })

  test('of the help is plain', async () => {
    const commands = (await leafCommands()).map((command) => command.description())
    const options = Object.values(OPTIONS).map(({ description }) => description)

    expect(problemsOfAll([...commands, ...options])).toEqual([])
  })

  test('of messages is plain', async () => {
    const errors = Object.values(ERRORS).flatMap(({ when, message }) => [when, message])

    expect(problemsOfAll([...errors, ...(await messages())])).toEqual([])
  })
})

/** A page without its lists of commands, options and metrics: these are texts of the help, whose sentences stand alone. */
const writtenByHand = async (page: string): Promise<string> =>
  (await readPage(page)).replace(/<!-- (\S+): written by bun run docs -->[\s\S]*?<!-- \/\1 -->/g, '')

describe('the sentences', () => {
  test.each(PAGES)('of %s flow', async (page) => {
    const { medianWords, shortPercent } = flowOf(await writtenByHand(page))

    expect(medianWords).toBeGreaterThanOrEqual(10)
    expect(medianWords).toBeLessThanOrEqual(14)
    expect(shortPercent).toBeLessThanOrEqual(20)
  })

  test.each(PAGES)('of %s make no paragraph in a cell', async (page) => {
    expect(paragraphsInCells(await writtenByHand(page))).toEqual([])
  })
})

test('the check of prose finds long, bad and repeated words, and the flow of a page without its tables and labels', () => {
  const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(' ')
  const bad = [`${words(31)}.`, 'It has two parts, of which one is old.', 'After a crash what was stored is there.']
  const good = [`${words(30)}.`, `Run \`${words(40)}\`.\n\n\`\`\`sh\n${words(40)}\n\`\`\``, 'Who may read?']
  const sentences = `One two three four five six seven. These are ${words(6)}. These are ${words(10)}.`
  const others = '- a phrase\n- **Label.** A sentence.\n\nExamples:\n\n| a |\n|---|\n| One. |\n\n```sh\na\n```'
  const cells = ['One is here. Two is there.', words(40), 'One is here. Two is there. Three is away.', words(41)]

  expect([...bad, 'It stores the the plant.'].map((text) => problemsOfAll([text]).length)).toEqual([1, 1, 1, 1])
  expect(problemsOfAll(good)).toEqual([])
  expect(flowOf(`# A heading\n\n${sentences}\n\n${others}`)).toEqual({
    sentences: 4,
    medianWords: 8,
    shortPercent: 50,
  })
  expect(cells.map((cell) => paragraphsInCells(`| a |\n|---|\n| ${cell} |`).length)).toEqual([0, 0, 1, 1])
})
