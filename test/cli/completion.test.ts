import { describe, expect, test } from 'bun:test'
import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { createProgram } from '../../src/cli/cli.ts'
import { nameOf } from '../support/commands.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeIo } from '../support/io.ts'
import { lacks } from '../support/requirement.ts'
import { askShell, SETUPS } from './support/shells.ts'

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

const program = await createProgram(makeIo().io)
const commands = everyCommand(program)

/** For each line what a Tab at its end must offer. */
const EXPECTED: ReadonlyMap<string, readonly string[]> = new Map([
  ['plantstore ', program.commands.map((command) => command.name())],
  ['plantstore -', ['--help', '--version']],
  ['plantstore help ', program.commands.map((command) => command.name())],
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
