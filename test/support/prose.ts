import type { Nodes } from 'mdast'
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { gfm } from 'micromark-extension-gfm'
import writeGood from 'write-good'

/** The most words of a sentence. Code in a line counts as one word. */
const SENTENCE_MAX_WORDS = 30
/** A sentence with as few words is short. A page of short sentences reads like a telegram. */
const SHORT_MAX_WORDS = 7
/** The most sentences and words of a cell: more is a paragraph, which belongs under the table. */
const CELL_MAX_SENTENCES = 2
const CELL_MAX_WORDS = 40

/** Phrases that make a reader look for their noun, and what to write instead. */
const RIDDLES: readonly (readonly [RegExp, string])[] = [
  [/\bof (?:which|whom)\b/gi, 'say it in a sentence of its own'],
  [/\bwho(?:m|)ever\b/gi, 'name the person'],
  [/\bwhere there (?:is|are|was|were)\b/gi, 'begin with "if"'],
  [/\bwhat (?:[\w'-]+ ){1,8}(?:is|are|was|were)\b(?! for)/gi, 'name the thing'],
  [/^(?:Who|Whose) .*[^?]$/g, 'name the person'],
]

/** The checks of write-good that find what style.md forbids. The others refuse common words, or passives in messages. */
const CHECKS = { passive: false, adverb: false, weasel: false, tooWordy: false, thereIs: false, so: false }

/** The problems of a sentence, each with its reason. */
export function problemsOf(sentence: string): readonly string[] {
  const words = wordsOf(sentence)
  const long = words > SENTENCE_MAX_WORDS ? [`${words} words`] : []
  const riddles = RIDDLES.flatMap(([pattern, advice]) =>
    [...sentence.matchAll(pattern)].map(([text]) => `"${text.slice(0, 40)}": ${advice}`),
  )
  return [...long, ...riddles, ...writeGood(sentence, CHECKS).map(({ reason }) => reason)]
}

const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => /\w/.test(word)).length

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' })

/** The sentences of a text without markup. */
export const sentencesOf = (text: string): readonly string[] =>
  [...segmenter.segment(text.replace(/\s+/g, ' '))].map(({ segment }) => segment.trim()).filter((each) => each !== '')

/** The sentences of a Markdown text: of paragraphs, headings and the cells of tables. Blocks of code have none. */
export const sentencesOfMarkdown = (markdown: string): readonly string[] =>
  blocksOf(treeOf(markdown)).flatMap(({ block }) => sentencesOfBlock(block))

/** How the sentences of a page flow. Headings, tables, code, phrases in lists and labels do not count. */
export interface Flow {
  readonly sentences: number
  readonly medianWords: number
  /** The percentage of sentences with seven words or fewer. */
  readonly shortPercent: number
}

/** How the sentences of a Markdown text flow. */
export function flowOf(markdown: string): Flow {
  const blocks = blocksOf(treeOf(markdown)).filter(({ block }) => block.type === 'paragraph')
  const words = blocks
    .flatMap(({ block, isItem }) => {
      const sentences = sentencesOfBlock(isItem ? withoutLabel(block) : block)
      const [first = ''] = sentences
      const isPhrase = isItem && sentences.length === 1 && !/[.!?:]$/.test(first)
      return isPhrase || /^\w+(?: \w+)?:$/.test(first) ? [] : sentences.map(wordsOf)
    })
    .sort((a, b) => a - b)
  const short = words.filter((count) => count <= SHORT_MAX_WORDS).length
  return {
    sentences: words.length,
    medianWords: words[Math.floor(words.length / 2)] ?? 0,
    shortPercent: Math.round((100 * short) / Math.max(words.length, 1)),
  }
}

/** The bold words at the beginning of an item of a list are a label. */
function withoutLabel(block: Nodes): Nodes {
  if (block.type !== 'paragraph' || block.children[0]?.type !== 'strong') return block
  return { ...block, children: block.children.slice(1) }
}

/** The cells of tables that hold a paragraph, as text. */
export const paragraphsInCells = (markdown: string): readonly string[] =>
  blocksOf(treeOf(markdown)).flatMap(({ block }) => {
    const sentences = block.type === 'tableCell' ? sentencesOfBlock(block) : []
    const text = sentences.join(' ')
    return sentences.length > CELL_MAX_SENTENCES || wordsOf(text) > CELL_MAX_WORDS ? [text] : []
  })

const treeOf = (markdown: string): Nodes =>
  fromMarkdown(markdown, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] })

function sentencesOfBlock(block: Nodes): readonly string[] {
  let codes = 0
  // The number makes each a word of its own, and the capital may begin a sentence.
  return sentencesOf(textOf(block, () => `Code${++codes}`))
}

interface Block {
  readonly block: Nodes
  readonly isItem: boolean
}

function blocksOf(block: Nodes, isItem = false): readonly Block[] {
  if (block.type === 'paragraph' || block.type === 'heading' || block.type === 'tableCell') return [{ block, isItem }]
  return 'children' in block ? block.children.flatMap((each) => blocksOf(each, block.type === 'listItem')) : []
}

/** The text of a part of a page, with a word in place of each code. */
function textOf(node: Nodes, nextCode: () => string): string {
  if (node.type === 'inlineCode') return nextCode()
  if (node.type === 'text') return node.value
  if (node.type === 'break') return ' '
  const text = 'children' in node ? node.children.map((child) => textOf(child, nextCode)).join('') : ''
  // The name of a file may begin a sentence.
  return node.type === 'link' ? text.slice(0, 1).toUpperCase() + text.slice(1) : text
}
