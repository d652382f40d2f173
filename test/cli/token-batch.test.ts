import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { BATCH_MAX_BYTES, GROUP_TOKENS } from '../../src/cli/commands/token-batch.ts'
import { hashToken } from '../../src/domain/token.ts'
import { openStore } from '../../src/store/open.ts'
import { COMMAND } from '../support/executable.ts'
import { startProgram } from '../support/program.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { refusal, refusalWith } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'

const CREATE = ['token', 'create', '--batch']

const makeBatch = () => {
  const made = makeDatabase()
  return { ...made, batch: (stdin: string, ...args: readonly string[]) => made.feed(stdin, ...CREATE, ...args) }
}

const linesOf = (count: number) => Array.from({ length: count }, (_, index) => `user-${index}\n`).join('')

/** The users and the tokens that a batch printed, without a line that was cut. */
const printedBy = (stdout: string) =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' '))

/** The users that a database has for printed tokens. A text that is no token of the database has none. */
async function ownersOf(database: string, printed: readonly (readonly string[])[]) {
  const store = await openStore(database, () => {})
  try {
    return await Promise.all(printed.map(async ([, text = '']) => (await store.findToken(hashToken(text)))?.userName))
  } finally {
    await store.close()
  }
}

describe.concurrent('token create --batch', () => {
  test('prints with --json one array of several transactions', async () => {
    using made = makeBatch()
    const { stdout } = await made.batch(linesOf(2 * GROUP_TOKENS + 1), '--json')
    const tokens: readonly Record<'token' | 'user' | 'id', string>[] = JSON.parse(stdout)

    expect(tokens).toHaveLength(2 * GROUP_TOKENS + 1)
    expect(stdout).toBe(`${JSON.stringify(tokens, null, 2)}\n`)
    expect(await made.tokens()).toEqual(
      tokens.map(({ token: _, ...fields }) => ({ ...fields, lastUsed: null, state: 'active', replacedBy: null })),
    )
    const owners = await ownersOf(
      made.database,
      tokens.map(({ user, token }) => [user, token]),
    )
    expect(owners).toEqual(tokens.map(({ user }) => user))
  })

  test('takes BATCH_MAX_BYTES of UTF-8, and refuses one byte more', async () => {
    using made = makeBatch()
    const batch = `#${'x'.repeat(BATCH_MAX_BYTES - 4)}\nme`

    expect(await made.batch(`${batch}m`)).toEqual(refusalWith(2, `more than ${BATCH_MAX_BYTES} bytes`))
    expect(existsSync(made.database)).toBe(false)
    expect((await made.batch(batch)).stdout).toMatch(/^me plst_\w+\n$/)
  })

  test.skipIf(!existsSync('/dev/full'))('says which tokens it could not print, and exits with 1', async () => {
    using made = makeBatch()
    await createTokenIn(made.database)
    const script = 'exec "$@" token create --batch --database "$0" >/dev/full'
    const { ended } = startProgram(['sh', '-c', script, made.database, ...COMMAND], {
      stdin: linesOf(2 * GROUP_TOKENS),
    })

    const failure = 'some could not be printed (ENOSPC: no space left on device, write)'
    expect(await ended).toEqual(
      refusal(1, `Tokens 2 to ${GROUP_TOKENS + 1} are active, but ${failure}: run plantstore token revoke for those.`),
    )
    expect(await made.tokens()).toHaveLength(GROUP_TOKENS + 1)
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'ends by %s between two transactions, and says what is left',
    async (signal) => {
      using made = makeBatch()
      const { child, stdout, ended } = made.start(`# first\n${linesOf(100_000)}`, ...CREATE, '--json')
      await until('a token is printed', () => stdout() !== '')
      child.kill(signal)
      const { exitCode, ...output } = await ended
      const ids = (tokens: readonly { readonly id: number }[]) => tokens.map(({ id }) => id)
      const tokens = JSON.parse(output.stdout)

      expect(exitCode).toBe(signal === 'SIGINT' ? 130 : 143)
      expect(tokens.length).toBeLessThan(100_000)
      expect(ids(await made.tokens())).toEqual(ids(tokens))
      expect(output.stderr).toEndWith(
        `Stopped by ${signal}: ${tokens.length} of 100000 tokens are created and printed. To create the rest, run the command with the lines after line ${tokens.length + 1}.\n`,
      )
    },
  )

  test('has stored each token that it has printed when it is killed', async () => {
    using made = makeBatch()
    const { child, stdout, ended } = made.start(linesOf(100_000), ...CREATE)
    await until('a token is printed', () => stdout() !== '')
    child.kill('SIGKILL')
    const printed = printedBy((await ended).stdout)

    expect(printed.length).toBeGreaterThan(0)
    expect(await ownersOf(made.database, printed)).toEqual(printed.map(([user]) => user))
  })
})
