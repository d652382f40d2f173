import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { copy } from '../cli/support/copies.ts'
import { type DatabaseKind, type EmptyDatabase, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { COMMAND, runPlantstore } from '../support/executable.ts'
import { addPlants } from '../support/many-plants.ts'
import { lockTables, POSTGRES_SERVER, untilWaiting } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { testRounds } from './rounds.ts'

const PLANTS = 20_000

for (const { from, to } of [
  { from: SQLITE, to: POSTGRES },
  { from: POSTGRES, to: SQLITE },
]) {
  // test/fault/killed-commands.test.ts kills a copy from SQLite to SQLite at each of its calls.
  testRounds(
    `copy from ${from.name} to ${to.name} that is killed leaves a whole copy or nothing, and is repeated`,
    { short: 1, long: 40, needs: [POSTGRES_SERVER] },
    async (random) => {
      await using source = await makeSource(from)
      const beginMs = performance.now()
      await using whole = await to.make()
      expect(await copy(source.database, whole.database)).toMatchObject({ exitCode: 0 })
      const wholeMs = Math.round(performance.now() - beginMs)
      // At once, and at some moment. On a busy machine a copy may end before the kill.
      await until('a kill comes before the end of a copy', () => killCopy(source, to, 0))
      await killCopy(source, to, random(wholeMs))
    },
  )
}

/** Kills a copy this time after it has begun to fill its target, and repeats it if nothing is there. Returns whether it did. */
async function killCopy(source: EmptyDatabase, to: DatabaseKind, afterMs: number): Promise<boolean> {
  await using target = await to.make()
  const command = [...COMMAND, 'copy', '--from', source.database, '--to', target.database]
  const { child, ended } = startProgram(command, { env: { PATH: process.env.PATH } })
  const hasBegun = async () =>
    to === POSTGRES
      ? (await target.dump().catch(() => undefined)) !== undefined
      : readdirSync(dirname(target.database)).length > 0
  await until('the copy fills its target', async () => child.exitCode !== null || (await hasBegun()))
  await Promise.race([ended, Bun.sleep(afterMs)])
  child.kill('SIGKILL')
  await ended
  const left = await target.dump()
  const isNothing = left === undefined || left.users.length === 0
  if (isNothing)
    expect(await copy(source.database, target.database)).toMatchObject({ stdout: `${target.database}\n`, exitCode: 0 })
  expect(await target.dump()).toEqual((await source.dump()) as never)
  return isNothing
}

/** A store with plants of two users. */
async function makeSource(kind: DatabaseKind): Promise<EmptyDatabase> {
  const made = await SQLITE.make()
  for (const user of ['me', 'you']) await createTokenIn(made.database, user)
  addPlants(made.database, PLANTS / 2)
  if (kind === SQLITE) return made
  await using original = made
  const copied = await kind.make()
  expect(await copy(original.database, copied.database)).toMatchObject({ exitCode: 0 })
  return copied
}

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
