import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { createProgram } from '../../src/cli/cli.ts'
import { nameOf } from '../support/commands.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { makeIo } from '../support/io.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program, type Requirement } from '../support/requirement.ts'
import { until } from '../support/until.ts'

const PROMPT = 'prompt> '
const BASH_COMPLETION = '/usr/share/bash-completion/bash_completion'

/** A way in which a shell gets its script. */
interface Setup {
  readonly shell: 'bash' | 'zsh' | 'fish'
  /** How the script gets into the shell. */
  readonly by: string
  readonly needs: readonly Requirement[]
  /** Where the script is, in a folder. */
  readonly path: string
  /** Starts an interactive shell that reads lines of a terminal, and the line that makes it ready. Fish needs no terminal. */
  readonly start?: readonly string[]
  readonly prepare: string
}

const BASH = {
  shell: 'bash',
  start: ['bash', '--noprofile', '--norc', '-i'],
  // A Tab prints all completions, a line each.
  prepare: `bind 'set completion-query-items -1' 'set page-completions off' 'set completion-display-width 1' 'set bell-style none' '"\\t": possible-completions'`,
} as const

const ZSH = {
  shell: 'zsh',
  needs: [program('zsh')],
  start: ['zsh', '-f', '-i'],
  // A Tab prints all completions, in columns or with their descriptions.
  prepare: `autoload -Uz compinit; compinit -u -D; LISTMAX=1000; setopt no_beep no_always_last_prompt; bindkey '^I' list-choices`,
} as const

const SETUPS: readonly Setup[] = [
  {
    ...BASH,
    by: 'sourcing it, with nounset and another IFS',
    needs: [],
    path: 'script',
    prepare: `${BASH.prepare}; source ./script; set -u; IFS=,`,
  },
  {
    ...BASH,
    by: 'the package bash-completion',
    needs: [{ missing: 'bash-completion is missing', isMet: () => existsSync(BASH_COMPLETION) }],
    path: 'share/bash-completion/completions/plantstore',
    prepare: `${BASH.prepare}; source ${BASH_COMPLETION}`,
  },
  { ...ZSH, by: 'sourcing it', path: 'script', prepare: `${ZSH.prepare}; source ./script` },
  {
    ...ZSH,
    by: 'its name in fpath',
    path: 'share/zsh/site-functions/_plantstore',
    prepare: `fpath+=($PWD/share/zsh/site-functions); ${ZSH.prepare}`,
  },
  {
    shell: 'fish',
    by: 'its name in XDG_DATA_DIRS',
    needs: [program('fish')],
    path: 'share/fish/vendor_completions.d/plantstore.fish',
    prepare: 'for line in $argv; complete -C $line; echo end; end',
  },
]

/** Puts a script where the setup has it, makes files in the folder `files` beside it, and returns what a Tab after each line offers. */
async function askShell(
  { path, start, prepare }: Setup,
  script: string,
  files: readonly string[],
  lines: readonly string[],
): Promise<readonly (readonly string[])[]> {
  using folder = makeFolder()
  for (const [name, text] of [[path, script], ...files.map((file) => [file, ''])] as const) {
    await Bun.write(join(folder.path, name), text)
  }
  // Fish completes only commands that it finds.
  await Bun.write(join(folder.path, 'bin/plantstore'), '')
  chmodSync(join(folder.path, 'bin/plantstore'), 0o755)
  const options = {
    cwd: folder.path,
    env: {
      ...{
        PATH: `${join(folder.path, 'bin')}:${process.env.PATH}`,
        HOME: folder.path,
        LANG: 'C.UTF-8',
        TERM: 'dumb',
        PS1: PROMPT,
      },
      XDG_DATA_DIRS: join(folder.path, 'share'),
    },
  }
  if (start !== undefined) return await askOnTerminal(start, options, prepare, lines)
  const { stdout, stderr } = await runProgram(['fish', '--command', prepare, ...lines], options)
  if (stderr !== '') throw new Error(stderr)
  const answers = stdout.split(/^end\n/m).slice(0, -1)
  return answers.map((answer) => answer.split('\n').flatMap((line) => line.split('\t')[0] || []))
}

async function askOnTerminal(
  start: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
  prepare: string,
  lines: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const decoder = new TextDecoder()
  let text = ''
  const data = (_: unknown, chunk: Uint8Array) => {
    text += decoder.decode(chunk, { stream: true })
  }
  const child = Bun.spawn([...start], { ...options, terminal: { cols: 400, rows: 200, data } })
  /** Types something and waits until the shell is ready for the next line. */
  const type = async (keys: string, word: string) => {
    text = ''
    // The quotes keep the echo of the keys from looking like the answer.
    child.terminal?.write(`${keys}echo ''${word}\n`)
    await until(`the shell printed ${word}: ${text}`, (see) => see(text).split(`\n${word}\r\n`)[1]?.includes(PROMPT))
    return text
  }
  try {
    await until('the shell started', (see) => see(text).includes(PROMPT))
    await type(`${prepare}; `, 'ready')
    const answers: string[] = []
    // Control-U deletes the line.
    for (const [index, line] of lines.entries()) answers.push(await type(`${line}\t\u0015`, `end-${index}`))
    return answers.map((answer, index) => offersIn(answer, lines[index] ?? ''))
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
}

/** The completions that a shell printed between a line and the next prompt, without their descriptions. */
function offersIn(answer: string, line: string): readonly string[] {
  const [shown = ''] = answer.split("echo ''")
  const [first = '', ...others] = shown.split(/\r*\n/)
  // After a Tab without completions, bash does not list a single one, but writes it.
  const written = first.split('\r').filter((each) => each.includes(line))
  if (!written.some((each) => each.endsWith(line))) return written[0]?.trim().split(' ').slice(-1) ?? []
  const columns = others.slice(0, -1).flatMap((row) => (row.split(/ +-- /)[0] ?? '').split(/ {2,}|\r/))
  return columns.filter((column) => column !== '').map((column) => column.replaceAll('\\', ''))
}

/** Where paths belong. Nobody but the user knows the other values that are no choices. */
const PATHS = ['--database', '--database-password-file', '--tls-cert', '--tls-key', '--dir', '--from', '--to'].concat(
  ['--from-password-file', '--to-password-file', '--jwt-keys'],
  ['token import', 'backup', 'restore', 'import'],
)
const FILES = ['plants of me.db', 'plants/fern']
const FOUND = ['plants of me.db', 'plants/']

const everyCommand = ({ commands }: CommandUnknownOpts): readonly CommandUnknownOpts[] =>
  commands.flatMap((command) => [command, ...everyCommand(command)])

/** Every command takes --help. The words of a command can follow `help`, so that takes what the program takes. */
const flagsOf = (command: CommandUnknownOpts): readonly string[] =>
  ['--help', ...command.options.map(({ long }) => `${long}`)].concat(command.name() === 'help' ? '--version' : [])

const takesValue = ({ flags }: Option): boolean => /[<[]/.test(flags)

const root = await createProgram(makeIo().io)
const commands = everyCommand(root)

/** For each line what a Tab at its end must offer. */
const EXPECTED: ReadonlyMap<string, readonly string[]> = new Map([
  ['plantstore ', root.commands.map((command) => command.name())],
  ['plantstore -', ['--help', '--version']],
  ['plantstore help ', root.commands.map((command) => command.name())],
  ...commands.flatMap((command) => {
    const name = nameOf(command).join(' ')
    const names = command.commands.map((each) => each.name())
    const values = command.options.filter(takesValue).map(({ long, argChoices = [] }) => {
      const isPath = PATHS.includes(`${long}`)
      return [`plantstore ${name} ${long} ${isPath ? 'plants' : ''}`, isPath ? FOUND : argChoices] as const
    })
    const group =
      names.length > 0
        ? ([
            [`plantstore ${name} `, names],
            [`plantstore help ${name} `, names],
          ] as const)
        : []
    return [[`plantstore ${name} --`, flagsOf(command)] as const, ...values, ...group]
  }),
  ...PATHS.filter((name) => !name.startsWith('--')).map((name) => [`plantstore ${name} plants`, FOUND] as const),
])

describe.concurrent('plantstore completion', () => {
  for (const setup of SETUPS) {
    test.skipIf(lacks(...setup.needs))(
      `offers exactly the commands, options, values and paths that exist, in ${setup.shell} by ${setup.by}`,
      async () => {
        const { stdout: script, ...rest } = await runPlantstore(['completion', setup.shell])
        const found = await askShell(setup, script, FILES, [...EXPECTED.keys()])
        const offered = [...EXPECTED.keys()].map((line, index) => [line, found[index]?.toSorted()])
        const expected = [...EXPECTED].map(([line, words]) => [line, words.toSorted()])

        expect(rest).toEqual({ stderr: '', exitCode: 0 })
        expect(offered).toEqual(expected)
      },
    )
  }
})
