import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { lacks, type Requirement } from './requirement.ts'

/**
 * A test that reads as a terminal shows it: a title, and steps, which say what is asked and all that comes back. `cli/commands.test.ts`
 * and `http/transcripts.test.ts` say how each reads.
 *
 * `{token}` in what comes back is any text of `KINDS.token`, and spaces before `}` keep a table straight. With a number it is the same
 * text wherever it stands in the test. `{9*ab}` repeats a text.
 */
interface Transcript {
  readonly title: string
  /** What stands before the first step, behind the title. */
  readonly opening: string
  readonly steps: readonly Step[]
}

interface Step {
  /** Where it begins in the file. */
  readonly line: number
  /** All of these are answered alike. */
  readonly asked: readonly string[]
  readonly printed: string
}

/** Who answers the steps of one test. */
interface Stage extends AsyncDisposable {
  /** The texts of `{…}` in all steps, to which those join that come back. */
  readonly known: Map<string, string>
  answer(asked: string, printed: string): Promise<string>
}

interface TranscriptsOptions {
  /** A step as far as it is asked. */
  readonly asked: RegExp
  readonly open: (opening: string) => Promise<Stage>
  /** What a test needs of the system. */
  readonly needs?: (asked: string) => readonly Requirement[]
}

/** The texts that differ from run to run. */
const KINDS: Readonly<Record<string, string>> = {
  number: '\\d+',
  seconds: '[1-9]\\d*',
  decimal: '\\d+(?:\\.\\d+)?',
  hash: '[0-9a-f]{64}',
  uuid: '[0-9a-f-]{36}',
  etag: '"[!#-~]+"',
  text: '.*',
  clock: '\\d\\d:\\d\\d:\\d\\d\\.\\d{3}',
  time: '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z',
  token: 'plst_[0-9A-Za-z]{49}',
}
const PROJECT = join(import.meta.dir, '../..')
const VARIABLE = /\{([a-z]+\d*) *\}/g
/** More at once would make a server slower than the 2 s for which `plantstore healthcheck` waits. */
const LANES = 6

/** Registers all tests in the files of a folder, or in some of them. */
export function testTranscripts(
  folder: string,
  { files = readdirSync(folder), ...options }: TranscriptsOptions & { readonly files?: readonly string[] },
): void {
  const lanes = Array.from({ length: LANES }, () => Promise.resolve())
  /** Runs a test as soon as its lane is free. */
  const whenFree = (run: () => Promise<void>) => {
    const done = (lanes.shift() ?? Promise.resolve()).then(run)
    lanes.push(done.catch(() => {}))
    return done
  }
  describe.concurrent.each(files.toSorted())('%s', (file) => {
    for (const transcript of readTranscripts(readFileSync(join(folder, file), 'utf8'), options.asked)) {
      const play = async () => {
        const { expected, actual, line } = await runTranscript(transcript, options)

        expect(actual, `${relative(PROJECT, join(folder, file))}:${line} comes back otherwise`).toBe(expected)
      }
      const needs = options.needs?.(transcript.steps.map(({ asked }) => asked.join('')).join('')) ?? []
      test.skipIf(lacks(...needs))(transcript.title, () => whenFree(play))
    }
  })
}

/** The line of the first step that comes back otherwise than it says; `undefined` if there is none. */
export async function lineOfDifference(text: string, options: TranscriptsOptions): Promise<number | undefined> {
  const [transcript] = readTranscripts(`# Title\n${text}`, options.asked)
  if (!transcript?.steps.length) throw new Error('nothing is asked')
  return (await runTranscript(transcript, options)).line
}

/** The tests of a file. */
export function readTranscripts(text: string, asked: RegExp): readonly Transcript[] {
  const step = new RegExp(`^(${asked.source})`, 'm')
  const [before = '', ...sections] = repeated(text).split(/^# /m)
  let line = 1 + linesIn(before)
  return sections.map((section) => {
    const [head = '', ...parts] = section.split(step)
    const [title = '', ...opening] = head.split('\n')
    line += linesIn(head)
    const steps = parts.flatMap((part, index) => {
      const begun = { line, asked: part.split(/^(?=(?:\$|\w+>) )/m), printed: withoutBlankEnd(parts[index + 1]) }
      line += linesIn(part)
      return index % 2 === 0 ? [begun] : []
    })
    return { title, opening: opening.join('\n'), steps }
  })
}

const linesIn = (text: string): number => text.split('\n').length - 1
const withoutBlankEnd = (text = ''): string => text.replace(/\n+$/, '\n').replace(/^\n$/, '')

/** Runs the steps. Resolves to what should come back, what came, and the line of the first difference. */
async function runTranscript(transcript: Transcript, options: TranscriptsOptions) {
  let [expected, actual] = ['', '']
  let line: number | undefined
  for await (const row of rowsOf(transcript, options)) {
    expected += row.asked + row.expected
    actual += row.asked + row.came
    if (row.came !== row.expected) line ??= row.line
  }
  return { expected, actual, line }
}

/** Runs the steps, and yields each thing that is asked with what should come back and what came. */
export async function* rowsOf({ opening, steps }: Transcript, { open }: Pick<TranscriptsOptions, 'open'>) {
  await using stage = await open(opening)
  const { known } = stage
  for (const { asked, printed, ...step } of steps) {
    let { line } = step
    for (const each of asked) {
      const came = await stage.answer(each, printed)
      const found = patternOf(printed, known).exec(came)
      for (const [name, text] of Object.entries(found?.groups ?? {})) known.set(name, text)
      yield { line, asked: each, expected: found === null ? filled(printed, known) : came, came }
      line += linesIn(each)
    }
  }
}

const repeated = (text: string): string =>
  text.replace(/\{(\d+)\*(\}|[^}]+)\}/g, (_, count, part) => part.repeat(Number(count)))

/** A text with the known texts in the place of their names. */
export const filled = (text: string, known: ReadonlyMap<string, string>): string =>
  text.replace(VARIABLE, (variable, name) => known.get(name) ?? variable)

/** A pattern of what should come back. It has a group for each variable with a number whose text is not known yet. */
function patternOf(printed: string, known: ReadonlyMap<string, string>): RegExp {
  const named = new Set<string>()
  const parts = printed.split(VARIABLE).map((part, index) => {
    if (index % 2 === 0) return RegExp.escape(part)
    const [text, pattern] = [known.get(part), KINDS[part.replace(/\d+$/, '')]]
    if (text !== undefined || pattern === undefined) return RegExp.escape(text ?? `{${part}}`)
    if (!/\d$/.test(part)) return `(?:${pattern})`
    if (named.has(part)) return `\\k<${part}>`
    named.add(part)
    return `(?<${part}>${pattern})`
  })
  return new RegExp(`^${parts.join('')}$`)
}
