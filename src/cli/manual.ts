import { EXIT } from './io.ts'

/** When a command ends with each exit code that is its own. `done` and `misused` mean the same for most commands. */
type Exits = Partial<Readonly<Record<keyof typeof EXIT, string>>>

/** When a command that opens the store ends with exit code 3. */
export const STORE_UNUSABLE = 'The database is missing, damaged, full or locked, or cannot be reached.'

const COMMON: Exits = { done: 'Success.', misused: 'The command line or a variable is wrong.' }

/** The last part of the help of a command: two examples, without the name of the executable, and the exit codes. */
export function manual(examples: readonly [string, string], exits: Exits): string {
  const texts: Exits = { ...COMMON, ...exits }
  const codes = Object.entries(EXIT).flatMap(([name, code]) => {
    const text = texts[name as keyof typeof EXIT]
    return text === undefined ? [] : `  ${String(code).padEnd(3)}  ${text}`
  })
  return ['', 'Examples:', ...examples.map((each) => `  plantstore ${each}`), '', 'Exit codes:', ...codes].join('\n')
}
