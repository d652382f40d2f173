import { resolve } from 'node:path'
import type { Command } from 'commander'
import { createProgram } from '../../src/cli/cli.ts'
import { OPTIONS } from '../../src/config.ts'
import { codeTable } from '../../src/http/errors.ts'

export const README = resolve(import.meta.dir, '../../README.md')

/** The parts of the README that the code writes, by the name of the comment before them. */
const GENERATED: Readonly<Record<string, () => string | Promise<string>>> = {
  codes: codeTable,
  options: optionTable,
  commands: async () => `\`\`\`text\n${await commandTable()}\n\`\`\``,
}

/** The README as it is when the code has written its parts. */
export async function withGeneratedParts(readme: string): Promise<string> {
  let text = readme
  for (const [name, write] of Object.entries(GENERATED)) {
    const part = new RegExp(`(<!-- ${name}: written by bun run readme -->)[^]*?(<!-- /${name} -->)`)
    if (!part.test(text)) throw new Error(`the README has no part ${name}`)
    const written = await write()
    text = text.replace(part, (_, start: string, end: string) => `${start}\n${written}\n${end}`)
  }
  return text
}

function optionTable(): string {
  const rows = Object.values(OPTIONS).map((make) => {
    const { flags, envVar, defaultValueDescription, description } = make()
    const [variable, byDefault] = [envVar, defaultValueDescription].map((text) => (text ? `\`${text}\`` : ''))
    return `| \`${flags.replace('|', '\\|')}\` | ${variable} | ${byDefault} | ${description} |`
  })
  return ['| option | variable | default | what it does |', '|---|---|---|---|', ...rows].join('\n')
}

async function commandTable(): Promise<string> {
  const nobody = async () => {}
  const io = {
    argv: [],
    env: {},
    print: nobody,
    tell: nobody,
    terminal: () => undefined,
    printsToTerminal: false,
    readStdin: async () => '',
    stdin: async function* () {},
    onSignal: () => {},
    randomBytes: (count: number) => new Uint8Array(count),
    nowMs: () => 0,
    monotonicMs: () => 0,
    exit: () => {
      throw new Error('nothing is run here')
    },
  }
  const leaves = leafCommands(await createProgram(io, () => {}))
  const lines = leaves.map((command) => [usageOf(command), command.description()] as const)
  const width = Math.max(...lines.map(([usage]) => usage.length))
  return lines.map(([usage, description]) => `${usage.padEnd(width)}  ${description}`).join('\n')
}

const leafCommands = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leafCommands)

function usageOf(command: Command): string {
  const names: string[] = []
  for (let each: Command | null = command; each !== null; each = each.parent) names.unshift(each.name())
  const args = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  )
  const options = command.options.map(({ flags, mandatory }) => (mandatory ? flags : `[${flags}]`))
  return [...names, ...args, ...(options.length > 2 ? ['[options]'] : options)].join(' ')
}

if (import.meta.main) await Bun.write(README, await withGeneratedParts(await Bun.file(README).text()))
