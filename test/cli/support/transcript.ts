import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { COMMAND, EXECUTABLE, runPlantstore } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { program, type Requirement } from '../../support/requirement.ts'
import { MAY_CHANGE_USER } from '../../support/restricted.ts'

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
 * transcript.sh has functions for servers and requests.
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
  decimal: '\\d+(?:\\.\\d+)?',
  hash: '[0-9a-f]{64}',
  uuid: '[0-9a-f-]{36}',
  text: '.*',
  clock: '\\d\\d:\\d\\d:\\d\\d\\.\\d{3}',
  time: '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z',
  token: 'plst_[0-9A-Za-z]{49}',
}
const VARIABLE = /\{([a-z]+)(\d*) *\}/g
/** A slow machine prints such lines, too. */
const PROGRESS = /^(?:\d+ %: )?\d+ (?:of \d+ )?plants? (?:checked|copied|exported|imported)\n/gm

/** What steps need that hold these words. */
const NEEDS: readonly (readonly [word: RegExp, requirement: Requirement])[] = [
  [/\b(?:ask|request|logged|metrics|curl)\b/, program('curl')],
  [/\bsetpriv\b/, MAY_CHANGE_USER],
  [/\/proc\/|\/dev\/full/, { missing: 'this is no Linux', isMet: () => process.platform === 'linux' }],
  [/\b(?:self_signed|signed_by)\b/, program('openssl')],
  ...['sqlite3', 'jq', 'openssl', 'promtool', 'python3', 'script'].map(
    (name) => [new RegExp(`(?:^|[ (|])${name} `, 'm'), program(name)] as const,
  ),
]

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

/** What a transcript needs of the system. */
export function requirementsOf({ steps }: Transcript): readonly Requirement[] {
  const scripts = steps.map(({ script }) => script).join('')
  return NEEDS.flatMap(([word, requirement]) => (word.test(scripts) ? [requirement] : []))
}

/** Runs the steps. Resolves to what should be printed, and to what was printed; both are the same if all is well. */
export async function runTranscript({ steps }: Transcript) {
  using made = makeStage()
  const known = new Map([['folder', made.folder]])
  let [expected, actual] = ['', '']
  for (const step of steps) {
    const script = filled(step.script, known)
    const answer = await made.run(script)
    const told = answer.stderr.replace(PROGRESS, '').replace(/^/gm, '! ').replace(/! $/, '')
    const printed = told + answer.stdout + (answer.exitCode === 0 ? '' : `[${answer.exitCode}]\n`)
    const found = patternOf(step.printed, known).exec(printed)
    for (const [name, text] of Object.entries(found?.groups ?? {})) known.set(name, text)
    expected += `$ ${script}${found === null ? filled(step.printed, known) : printed}`
    actual += `$ ${script}${printed}`
  }
  return { expected, actual }
}

/** An empty folder for a transcript, in which `plantstore` is a program. Ends the servers that are left. */
function makeStage() {
  const outside = makeFolder()
  const makeInside = (name: string) => mkdirSync(join(outside.path, name), { recursive: true }) ?? ''
  const [folder, state, bin] = [makeInside('folder'), makeInside('state'), makeInside('bin')]
  if (EXECUTABLE) symlinkSync(EXECUTABLE, join(bin, 'plantstore'))
  else writeFileSync(join(bin, 'plantstore'), `#!/bin/sh\nexec '${COMMAND.join("' '")}' "$@"\n`, { mode: 0o755 })
  const env = { PATH: `${bin}:${process.env.PATH}`, STATE: state }
  const functions = join(import.meta.dir, 'transcript.sh')
  return {
    folder,
    run: (script: string) =>
      runPlantstore(['-c', `. '${functions}'\n${script}`], { command: ['sh'], cwd: folder, env }),
    [Symbol.dispose]() {
      for (const file of new Glob('*/pid').scanSync(state)) {
        const hasEnded = existsSync(join(state, file, '../code'))
        if (!hasEnded) process.kill(Number(readFileSync(join(state, file), 'utf8')), 'SIGKILL')
      }
      outside[Symbol.dispose]()
    },
  }
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
