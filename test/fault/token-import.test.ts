import { expect } from 'bun:test'
import { POSTGRES } from '../support/empty-databases.ts'
import { COMMAND, runPlantstore } from '../support/executable.ts'
import { lockTables, POSTGRES_SERVER, untilWaiting } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { testRounds } from './rounds.ts'

const stdin = Array.from({ length: 1000 }, (_, index) => `${makeTokenLine(`user-${index % 10}`).line}\n`).join('')

// test/fault/killed-commands.test.ts kills an import into a file at each of its calls.
testRounds(
  'a token import into PostgreSQL that is killed within its transaction stores nothing, and can be repeated',
  { short: 1, long: 5, needs: [POSTGRES_SERVER] },
  async () => {
    await using made = await POSTGRES.make()
    const args = ['token', 'import', '-', '--database', made.database]
    await createTokenIn(made.database, 'old')
    const before = await made.dump()
    // Tokens can be read, so the import has created its users when it waits.
    const lock = await lockTables(made.database, 'plantstore.tokens', 'share')
    const { child, ended } = startProgram([...COMMAND, ...args], { stdin })
    await untilWaiting(made.database, 1)
    child.kill('SIGKILL')
    await ended
    await lock.release()

    expect(await made.dump()).toEqual(before)
    // The database may still have the lock of the transaction that it rolls back.
    await until('the import succeeds', async (see) => see(await runPlantstore(args, { stdin })).exitCode === 0)
    expect((await made.dump())?.tokens).toHaveLength(1001)
  },
)
