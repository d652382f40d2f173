import { expect } from 'bun:test'
import { POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { COMMAND, runPlantstore } from '../support/executable.ts'
import { lockTables, POSTGRES_SERVER, untilWaiting } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { STRACE } from '../support/strace.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { testRounds } from './rounds.ts'
import { killAt, pickCall, traceCalls } from './system-calls.ts'

const LINES = Array.from({ length: 1000 }, (_, index) => `${makeTokenLine(`user-${index % 10}`).line}\n`).join('')

const importOn = (database: string) => ['token', 'import', '-', '--database', database]

testRounds(
  'a token import into a file that is killed stores all tokens or none, and can be repeated',
  { short: 3, long: 100, needs: [STRACE] },
  async (random) => {
    const start = async () => {
      const made = await SQLITE.make()
      await createTokenIn(made.database, 'old')
      const before = await made.dump()
      const run = (under: readonly string[] = []) => runPlantstore(importOn(made.database), { stdin: LINES, under })
      return { ...made, before, run }
    }
    await using whole = await start()
    using calls = traceCalls()
    await whole.run(calls.under)
    const { name, when } = pickCall((await calls.seen()).calls, random, ['pwrite64', 'fsync', 'fdatasync', 'ftruncate'])
    await using made = await start()
    using trace = traceCalls({ inject: killAt(name, when) })
    await made.run(trace.under)
    expect((await trace.seen()).calls.at(-1)).toMatchObject({ name, isLast: true })

    const after = await made.dump()
    if (after?.tokens.length !== 1001) expect(after).toEqual(made.before)
    expect(await made.run()).toMatchObject({ exitCode: 0 })
    expect((await made.dump())?.tokens).toHaveLength(1001)
  },
)

testRounds(
  'a token import into PostgreSQL that is killed within its transaction stores nothing, and can be repeated',
  { short: 1, long: 5, needs: [POSTGRES_SERVER] },
  async () => {
    await using made = await POSTGRES.make()
    await createTokenIn(made.database, 'old')
    const before = await made.dump()
    // Tokens can be read, so the import has created its users when it waits.
    const lock = await lockTables(made.database, 'plantstore.tokens', 'share')
    const { child, ended } = startProgram([...COMMAND, ...importOn(made.database)], { stdin: LINES })
    await untilWaiting(made.database, 1)
    child.kill('SIGKILL')
    await ended
    await lock.release()

    expect(await made.dump()).toEqual(before)
    const again = () => runPlantstore(importOn(made.database), { stdin: LINES })
    // The database may still have the lock of the transaction that it rolls back.
    await until('the import succeeds', async () => (await again()).exitCode === 0)
    expect((await made.dump())?.tokens).toHaveLength(1001)
  },
)
