import type { Nodes } from 'mdast'
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { gfm } from 'micromark-extension-gfm'
import writeGood from 'write-good'

/** The most words of a sentence. Code in a line counts as one word. */
const SENTENCE_MAX_WORDS = 30

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
  const words = sentence.split(/\s+/).filter((word) => /\w/.test(word)).length
  const long = words > SENTENCE_MAX_WORDS ? [`${words} words`] : []
  const riddles = RIDDLES.flatMap(([pattern, advice]) =>
    [...sentence.matchAll(pattern)].map(([text]) => `"${text.slice(0, 40)}": ${advice}`),
  )
  return [...long, ...riddles, ...writeGood(sentence, CHECKS).map(({ reason }) => reason)]
}

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' })

/** The sentences of a text without markup. */
export const sentencesOf = (text: string): readonly string[] =>
  [...segmenter.segment(text.replace(/\s+/g, ' '))].map(({ segment }) => segment.trim()).filter((each) => each !== '')

/** The sentences of a Markdown text: of paragraphs, headings and the cells of tables. Blocks of code have none. */
export function sentencesOfMarkdown(markdown: string): readonly string[] {
  const tree = fromMarkdown(markdown, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] })
  return blocksOf(tree).flatMap((block) => {
    let codes = 0
    // The number makes each a word of its own, and the capital may begin a sentence.
    return sentencesOf(textOf(block, () => `Code${++codes}`))
  })
}

const blocksOf = (node: Nodes): readonly Nodes[] => {
  if (node.type === 'paragraph' || node.type === 'heading' || node.type === 'tableCell') return [node]
  return 'children' in node ? node.children.flatMap(blocksOf) : []
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
