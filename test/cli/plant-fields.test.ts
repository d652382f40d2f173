import { describe, expect, test } from 'bun:test'
import { type NewPlant, Plant } from '../../src/domain/plant.ts'
import { openStore } from '../../src/store/open.ts'
import { listAll } from '../store/fixtures.ts'
import { POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { runPlantstore } from '../support/executable.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'

const FIELDS = Object.keys(Plant.properties)
const REQUIRED: readonly string[] = Plant.required ?? []
const isRequired = (field: string) => REQUIRED.includes(field)

/** A plant as a client sees it, with a text of its own in each of these fields. */
const plantWith = (fields: readonly string[], text: string): Plant =>
  Object.fromEntries(fields.map((field) => [field, `${text} ${field} "🌱"\n`])) as Plant

/** A plant with every field, and one with the required fields alone. */
const FULL = { id: 9007199254740993n, ...plantWith(FIELDS, 'full') } satisfies NewPlant
const BARE = { id: -1n, ...plantWith(FIELDS.filter(isRequired), 'bare') } satisfies NewPlant
const PLANTS = [BARE, FULL]

/** What an export prints. */
const linesOf = (plants: readonly NewPlant[]): string =>
  plants.map(({ id, ...plant }) => `{"user":"me","id":${id},${JSON.stringify(plant).slice(1)}\n`).join('')
const LINES = linesOf(PLANTS)

/** The plants of the only user. */
async function storedIn(database: string) {
  const store = await openStore(database, () => {})
  try {
    return await listAll(store, 1)
  } finally {
    await store.close()
  }
}

/** Runs a command that succeeds. Returns what it prints. */
async function run(args: readonly string[], stdin?: string): Promise<string> {
  const { stdout, stderr, exitCode } = await runPlantstore(args, stdin === undefined ? {} : { stdin })
  expect({ stderr, exitCode }).toEqual({ stderr: expect.any(String), exitCode: 0 })
  return stdout
}

// The model of test/http has all fields, too.
describe('the fields of a plant', () => {
  test('are replaced by an import, in the file that is read and in the store', async () => {
    await using place = await SQLITE.make()
    const first = linesOf(PLANTS.map((plant) => ({ ...plant, ...plantWith(FIELDS, 'first') })))

    await importInto(place.database, first)
    await importInto(place.database, first + LINES)

    expect(await storedIn(place.database)).toEqual(PLANTS)
  })

  const ways: readonly (readonly [string, (from: string, to: string) => Promise<unknown>])[] = [
    ['every line of an export, which an import stores', exportAndImport],
    ['every line of a CSV, which an import stores', exportAndImportCsv],
    ['a backup, and in the database that restore makes of it', backUpAndRestore],
    ['a copy from SQLite to SQLite', (from, to) => run(['copy', '--from', from, '--to', to])],
    ...(lacks(POSTGRES_SERVER) ? [] : [['a copy to PostgreSQL, and in one back to SQLite', copyThereAndBack] as const]),
  ]
  test.each(ways)('are in %s', async (_, bring) => {
    await using place = await SQLITE.make()
    await using other = await SQLITE.make()
    await importInto(place.database, LINES)

    await bring(place.database, other.database)

    expect(await storedIn(other.database)).toEqual(PLANTS)
  })
})

async function importInto(database: string, lines: string, args: readonly string[] = []): Promise<void> {
  await (await openStore(database, () => {})).close()
  await run(['import', '--on-conflict', 'replace', '--database', database, ...args], lines)
}

async function exportAndImport(from: string, to: string): Promise<void> {
  const lines = await run(['export', '--database', from])
  expect(lines).toBe(LINES)
  await importInto(to, lines)
}

async function exportAndImportCsv(from: string, to: string): Promise<void> {
  await importInto(to, await run(['export', '--csv', '--user', 'me', '--database', from]), ['--user', 'me'])
}

async function backUpAndRestore(from: string, to: string): Promise<void> {
  await run(['backup', `${from}.backup`, '--database', from])
  await run(['restore', `${from}.backup`, '--database', to])
}

async function copyThereAndBack(from: string, to: string): Promise<void> {
  await using postgres = await POSTGRES.make()
  await run(['copy', '--from', from, '--to', postgres.database])
  await run(['copy', '--from', postgres.database, '--to', to])
  expect(await storedIn(postgres.database)).toEqual(PLANTS)
}
