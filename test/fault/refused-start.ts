import { expect } from 'bun:test'
import { runPlantstore } from '../support/executable.ts'

/** Commands that open a database: one that makes it and goes on, one that makes it and ends, one that looks at it. */
const COMMANDS = ['serve --listen 127.0.0.1:0', 'token create --user me', 'check']

/** Expects every command that opens a database to end with 3 and with one line, which says all this. */
export async function expectRefusedStart(
  database: string,
  told: readonly (string | RegExp)[],
  under: readonly string[] = [],
): Promise<void> {
  const run = (command: string) => runPlantstore([...command.split(' '), '--database', database], { under })
  for (const { stdout, stderr, exitCode } of await Promise.all(COMMANDS.map(run))) {
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
    expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
    for (const each of told) expect(stderr).toMatch(each)
  }
}
