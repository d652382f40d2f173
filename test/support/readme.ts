import { resolve } from 'node:path'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { OPTIONS } from '../../src/config.ts'
import { codeTable } from '../../src/http/answers.ts'
import { leafCommands, nameOf } from './commands.ts'

export const README = resolve(import.meta.dir, '../../README.md')

/** The generated parts of the README, by the name in the comment before each. */
const GENERATED: Readonly<Record<string, () => string | Promise<string>>> = {
  codes: codeTable,
  options: optionTable,
  commands: async () => `\`\`\`text\n${await commandTable()}\n\`\`\``,
}

/** The README with its parts generated again. */
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
  const rows = Object.values(OPTIONS).map(({ flags, envVar, defaultValueDescription, description }) => {
    const [variable, byDefault] = [envVar, defaultValueDescription].map((text) => (text ? `\`${text}\`` : ''))
    return `| \`${flags.replace('|', '\\|')}\` | ${variable} | ${byDefault} | ${description} |`
  })
  return ['| option | variable | default | what it does |', '|---|---|---|---|', ...rows].join('\n')
}

async function commandTable(): Promise<string> {
  const leaves = await leafCommands()
  const lines = leaves.map((command) => [usageOf(command), command.description()] as const)
  const width = Math.max(...lines.map(([usage]) => usage.length))
  return lines.map(([usage, description]) => `${usage.padEnd(width)}  ${description}`).join('\n')
}

function usageOf(command: CommandUnknownOpts): string {
  const args = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  )
  const options = command.options.map(({ flags, mandatory }) => (mandatory ? flags : `[${flags}]`))
  return ['plantstore', ...nameOf(command), ...args, ...(options.length > 2 ? ['[options]'] : options)].join(' ')
}

if (import.meta.main) await Bun.write(README, await withGeneratedParts(await Bun.file(README).text()))
