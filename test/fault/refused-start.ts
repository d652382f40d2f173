import { expect } from 'bun:test'
import { runPlantstore } from '../support/executable.ts'

/** Commands that open a database. The first two make it if it does not exist. */
const COMMANDS = ['serve --listen 127.0.0.1:0', 'token create --user me', 'check']

/** Expects the commands to end with 3 and with one line that matches all these messages. */
export async function expectRefusedStart(
  database: string,
  messages: readonly (string | RegExp)[],
  under: readonly string[] = [],
): Promise<void> {
  const run = (command: string) => runPlantstore([...command.split(' '), '--database', database], { under })
  for (const { stdout, stderr, exitCode } of await Promise.all(COMMANDS.map(run))) {
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 })
    expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
    for (const each of messages) expect(stderr).toMatch(each)
  }
}
