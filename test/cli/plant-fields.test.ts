import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { type NewPlant, Plant } from '../../src/domain/plant.ts'
import { openStore } from '../../src/store/open.ts'
import { listAll } from '../store/fixtures.ts'
import { POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { administer, POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'

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

const withoutId = ({ id, ...plant }: NewPlant) => plant
const jsonOf = ({ id, ...plant }: NewPlant, others: object = {}) =>
  JSON.stringify({ ...others, id: 0, ...plant }).replace('"id":0', `"id":${id}`)

/** Sends both plants to a server, and reads them there in each way. */
async function createAndList(database: string) {
  const token = await createTokenIn(database)
  await using server = await serve(database)
  const created: unknown[] = []
  for (const plant of [FULL, BARE]) {
    const answer = await server.request('POST', '/plants', { token, body: jsonOf(plant) })
    created.push(await answer.json())
  }
  const listed = await server.request('GET', '/plants', { token })
  const capped = await server.request('GET', '/plants?limit=5', { token })
  const lists = [await listed.json(), await capped.json()]
  const got = await Promise.all(
    PLANTS.map(async ({ id }) => (await server.request('GET', `/plants/${id}`, { token })).json()),
  )
  await server.end()
  return { created, got, lists }
}

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

/** The columns that the table `plants` must have: name, type, whether a value is required. */
const columns = (number: string, text: string) => [
  ['user_id', number, true],
  ['id', number, true],
  ...FIELDS.map((field) => [field, text, isRequired(field)]),
]

describe('the fields of a plant', () => {
  test('are the columns of the SQLite table', async () => {
    await using place = await SQLITE.make()
    await (await openStore(place.database, () => {})).close()
    using db = new Database(place.database, { readonly: true })

    const found = db.prepare(`select name, type, "notnull" from pragma_table_info('plants')`).values()

    expect(found.map(([name, type, isNotNull]) => [name, type, isNotNull === 1])).toEqual(columns('INTEGER', 'TEXT'))
  })

  test.skipIf(lacks(POSTGRES_SERVER))('are the columns of the PostgreSQL table', async () => {
    await using place = await POSTGRES.make()
    await (await openStore(place.database, () => {})).close()

    const found = await administer(place.database, (sql) =>
      sql
        .unsafe(
          `select column_name, data_type, is_nullable = 'NO' from information_schema.columns
           where table_schema = 'plantstore' and table_name = 'plants' order by ordinal_position`,
        )
        .values(),
    )

    expect([...found]).toEqual(columns('bigint', 'text'))
  })

  test.each([SQLITE, ...(lacks(POSTGRES_SERVER) ? [] : [POSTGRES])])(
    'reach a $name store over HTTP, and come back',
    async (kind) => {
      await using place = await kind.make()

      const { created, got, lists } = await createAndList(place.database)

      expect(created).toEqual([withoutId(FULL), withoutId(BARE)])
      expect([got, ...lists]).toEqual(Array(3).fill(PLANTS.map(withoutId)))
      expect(await storedIn(place.database)).toEqual(PLANTS)
    },
  )

  test('are replaced by an import, in the file that is read and in the store', async () => {
    await using place = await SQLITE.make()
    await (await openStore(place.database, () => {})).close()
    const first = PLANTS.map((plant) => jsonOf({ ...plant, ...plantWith(FIELDS, 'first') }, { user: 'me' })).join('\n')
    const second = PLANTS.map((plant) => jsonOf(plant, { user: 'me' })).join('\n')
    const replace = ['import', '--on-conflict', 'replace', '--database', place.database]

    await run(replace, first)
    await run(replace, `${first}\n${second}`)

    expect(await storedIn(place.database)).toEqual(PLANTS)
  })

  const ways: readonly (readonly [string, (from: string, to: string) => Promise<unknown>])[] = [
    ['every line of an export, which an import stores', exportAndImport],
    ['a backup, and in the database that restore makes of it', backUpAndRestore],
    ['a copy from SQLite to SQLite', (from, to) => run(['copy', '--from', from, '--to', to])],
    ...(lacks(POSTGRES_SERVER) ? [] : [['a copy to PostgreSQL, and in one back to SQLite', copyThereAndBack] as const]),
  ]
  test.each(ways)('are in %s', async (_, bring) => {
    await using place = await SQLITE.make()
    await using other = await SQLITE.make()
    await createAndList(place.database)

    await bring(place.database, other.database)

    expect(await storedIn(other.database)).toEqual(PLANTS)
  })
})

async function exportAndImport(from: string, to: string): Promise<void> {
  await (await openStore(to, () => {})).close()
  const lines = await run(['export', '--database', from])
  expect(lines).toBe(PLANTS.map((plant) => `${jsonOf(plant, { user: 'me' })}\n`).join(''))
  await run(['import', '--database', to], lines)
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
