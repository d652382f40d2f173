import { COMMAND, runPlantstore } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'

/**
 * A test that reads as a terminal shows it:
 *
 *     # Says which token it revoked.
 *     $ plantstore token create --user me 2>log
 *     {token1}
 *     $ plantstore token revoke - --json <<end
 *     > {token1}
 *     > end
 *     ! Revoked token 1 of user me (write).
 *     {"revoked":1}
 *     $ plantstore token revoke 2
 *     ! plantstore: There is no such token: plantstore token list shows all.
 *     [1]
 *
 * Each test has an empty folder of its own, whose path is `{folder}`. The shell runs the line after `$` with those after `>`.
 * Then follows all that it prints: on stderr after `!`, on stdout, and its exit code unless that is 0. `{token}` is any text of
 * `KINDS.token`, and spaces before `}` keep a table straight. With a number it is the same text wherever it stands in the test.
 */
export interface Transcript {
  readonly title: string
  readonly steps: readonly Step[]
}

interface Step {
  readonly script: string
  readonly printed: string
}

/** The texts that differ from run to run. */
const KINDS: Readonly<Record<string, string>> = {
  number: '\\d+',
  hash: '[0-9a-f]{64}',
  text: '.*',
  time: '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z',
  token: 'plst_[0-9A-Za-z]{49}',
}
const VARIABLE = /\{([a-z]+)(\d*) *\}/g
/** A slow machine prints such lines, too. */
const PROGRESS = /^(?:\d+ %: )?\d+ (?:of \d+ )?plants? (?:checked|copied|imported)\n/gm

/** The tests of a file, each of which begins with a title. */
export const readTranscripts = (text: string): readonly Transcript[] =>
  text
    .split(/^# /m)
    .slice(1)
    .map((section) => {
      const [title = '', ...steps] = section.split(/^\$ /m)
      return { title: title.trim().replace(/\s+/g, ' '), steps: steps.map(readStep) }
    })

function readStep(text: string): Step {
  const [, script = '', printed = ''] = /^(.*\n(?:> ?.*\n)*)((?:.*\n)*?)\n*$/.exec(text) ?? []
  return { script: script.replace(/^> ?/gm, ''), printed }
}

/** Runs the steps. Resolves to what should be printed, and to what was printed; both are the same if all is well. */
export async function runTranscript({ steps }: Transcript) {
  using folder = makeFolder()
  const known = new Map([['folder', folder.path]])
  let [expected, actual] = ['', '']
  for (const step of steps) {
    const script = filled(step.script, known)
    const plantstore = `plantstore() { ${COMMAND.map((word) => `'${word}'`).join(' ')} "$@"; }`
    const answer = await runPlantstore(['-c', `${plantstore}\n${script}`], { command: ['sh'], cwd: folder.path })
    const told = answer.stderr.replace(PROGRESS, '').replace(/^/gm, '! ').replace(/! $/, '')
    const printed = told + answer.stdout + (answer.exitCode === 0 ? '' : `[${answer.exitCode}]\n`)
    const found = patternOf(step.printed, known).exec(printed)
    for (const [name, text] of Object.entries(found?.groups ?? {})) known.set(name, text)
    expected += `$ ${script}${found === null ? filled(step.printed, known) : printed}`
    actual += `$ ${script}${printed}`
  }
  return { expected, actual }
}

const filled = (text: string, known: ReadonlyMap<string, string>): string =>
  text.replace(VARIABLE, (variable, kind, index) => known.get(kind + index) ?? variable)

/** A pattern of what should be printed. It has a group for each variable with a number whose text is not known yet. */
function patternOf(printed: string, known: ReadonlyMap<string, string>): RegExp {
  const named = new Set<string>()
  const parts = printed.split(/(\{[a-z]+\d* *\})/).map((part) => {
    const [, kind = '', index = ''] = /^\{([a-z]+)(\d*) *\}$/.exec(part) ?? []
    const [name, text, pattern] = [kind + index, known.get(kind + index), KINDS[kind]]
    if (text !== undefined || pattern === undefined) return RegExp.escape(text ?? part)
    if (index === '') return `(?:${pattern})`
    if (named.has(name)) return `\\k<${name}>`
    named.add(name)
    return `(?<${name}>${pattern})`
  })
  return new RegExp(`^${parts.join('')}$`)
}
