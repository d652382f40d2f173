import { describe, expect, test } from 'bun:test'
import type { CopyAccess, CopyTools } from '../../src/store/engine.ts'
import { engineOf, openStore } from '../../src/store/open.ts'
import { type ContentsOptions, copyContents, type Target } from '../../src/store/tools/contents.ts'
import { type EmptyDatabase, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { administer, POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { createToken } from '../support/tokens.ts'
import { rejectionOf } from './rejection.ts'

const OPTIONS = { onProgress: () => {}, signal: new AbortController().signal }
const KINDS = [
  { name: 'SQLite', kind: SQLITE, isSkipped: false },
  { name: 'PostgreSQL', kind: POSTGRES, isSkipped: lacks(POSTGRES_SERVER) },
]
const OPEN_ELSEWHERE = {
  kind: 'store_unusable',
  message: expect.stringContaining('is open in another process: end it'),
}

const toolsOf = ({ database }: EmptyDatabase, access: CopyAccess = {}): Promise<CopyTools> =>
  engineOf(database).copyTools(access)

interface TestedOptions extends Partial<ContentsOptions> {
  readonly isSnapshot?: boolean
  /** Replaces methods of the target. */
  readonly change?: (target: Target) => Partial<Target>
}

/** Copies a store into another one. */
async function copy(
  from: EmptyDatabase,
  to: EmptyDatabase,
  { isSnapshot = false, change = () => ({}), ...options }: TestedOptions = {},
) {
  const [source, target] = [await toolsOf(from, { isSnapshot }), await toolsOf(to)]
  return source.read((contents) =>
    target.fill((filled) => copyContents(contents, { ...filled, ...change(filled) }, { ...OPTIONS, ...options })),
  )
}

/** Makes a store with a token and a plant. */
async function fillPlace({ database }: EmptyDatabase): Promise<void> {
  const store = await openStore(database, () => {})
  await createToken(store)
  await store.createPlant(1, { id: 1n, name: 'Fern' })
  await store.close()
}

async function addPlant({ database }: EmptyDatabase): Promise<void> {
  const store = await openStore(database, () => {})
  await store.createPlant(1, { id: 2n, name: 'Ivy' })
  await store.close()
}

async function addToken({ database }: EmptyDatabase): Promise<void> {
  const store = await openStore(database, () => {})
  await createToken(store, { user: 'you' })
  await store.close()
}

describe.each(KINDS)('a copy from or to $name', ({ kind, isSkipped }) => {
  test.skipIf(isSkipped)('copies the moment at which a snapshot began', async () => {
    await using place = await kind.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    const before = await place.dump()
    const write = async (target: Target, ...batch: Parameters<Target['insert']>) => {
      if (batch[0] === 'users') await addPlant(place)
      await target.insert(...batch)
    }

    await copy(place, other, {
      isSnapshot: true,
      change: (target) => ({ insert: (...batch) => write(target, ...batch) }),
    })

    expect(await other.dump()).toEqual(before as never)
    expect((await place.dump())?.plants).toHaveLength(2)
  })

  test.skipIf(isSkipped)('does not finish a target that differs from its source', async () => {
    await using original = await SQLITE.make()
    await using place = await kind.make()
    await fillPlace(original)
    const rename = (target: Target): Partial<Target> => ({
      insert: (table, rows) =>
        target.insert(table, table === 'plants' ? rows.map((row) => row.with(2, 'another name')) : rows),
    })

    const refusal = await rejectionOf(copy(original, place, { change: rename }))

    expect(refusal).toMatchObject({
      kind: 'store_unusable',
      message: expect.stringMatching(/^The copy is not the same: .+ instead of .+\.$/),
    })
    expect(await place.isUnfinished()).toBe(true)
    expect(await rejectionOf(openStore(place.database, () => {}))).toMatchObject({
      kind: 'store_unusable',
      message: expect.stringContaining('is a copy that is not finished'),
    })
  })

  test.skipIf(isSkipped)('reports for each stage how many plants it is done with', async () => {
    await using place = await kind.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    await addPlant(place)
    const told: unknown[] = []

    await copy(place, other, { onProgress: (...progress: readonly unknown[]) => void told.push(progress) })

    expect(told).toEqual(['copied', 'verified'].map((stage) => [stage, 2, 2]))
  })

  test.skipIf(isSkipped)('refuses a second copy into the same store', async () => {
    await using place = await kind.make()
    const tools = await toolsOf(place)

    const second = await tools.fill(() => rejectionOf(tools.fill(async () => {})))

    expect(second).toMatchObject({
      kind: 'store_unusable',
      message: expect.stringContaining('open in another process'),
    })
    expect(await place.isUnfinished()).toBe(true)
  })

  test.skipIf(isSkipped)('leaves an unfinished copy when it is stopped, and starts it over', async () => {
    await using original = await SQLITE.make()
    await using place = await kind.make()
    await fillPlace(original)
    const stopped = new AbortController()
    const stop = () => stopped.abort(new Error('enough'))

    const reason = await rejectionOf(copy(original, place, { signal: stopped.signal, onProgress: stop }))
    const wasUnfinished = await place.isUnfinished()
    await copy(original, place)

    expect(reason).toMatchObject({ message: 'enough' })
    expect(wasUnfinished).toBe(true)
    expect(await place.dump()).toEqual((await original.dump()) as never)
  })
})

describe.skipIf(lacks(POSTGRES_SERVER))('a copy from PostgreSQL', () => {
  test.each([
    ['a plant', addPlant],
    ['a token', addToken],
  ])('is not finished if %s was written meanwhile', async (_, write) => {
    await using place = await POSTGRES.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    const writeBeforeReading = (target: Target): Partial<Target> => ({
      async read(use) {
        await write(place)
        return target.read(use)
      },
    })

    const refusal = await rejectionOf(copy(place, other, { change: writeBeforeReading }))

    expect(refusal).toMatchObject({
      kind: 'store_unusable',
      message: 'The store was written to while it was copied: end its servers, or use --snapshot.',
    })
    expect(await other.isUnfinished()).toBe(true)
  })

  test('and back into PostgreSQL is exact if bytea_output is escape in both databases', async () => {
    await using place = await POSTGRES.make()
    await using other = await SQLITE.make()
    await using back = await POSTGRES.make()
    await fillPlace(place)
    const before = await place.dump()
    const alter = async (change: string) => {
      for (const { database } of [place, back]) {
        const name = new URL(database).pathname.slice(1)
        await administer(database, (sql) => sql.unsafe(`alter database ${name} ${change}`).simple())
      }
    }

    await alter(`set bytea_output = 'escape'`)
    await copy(place, other)
    await copy(other, back)
    await alter('reset bytea_output')

    expect(await back.dump()).toEqual(before as never)
  })

  test('with hidden sessions and --assume-alone is not finished if a plant was written meanwhile', async () => {
    await using place = await POSTGRES.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    await administer(place.database, (sql) =>
      sql
        .unsafe(
          `set allow_system_table_mods = on; alter view pg_catalog.pg_stat_activity rename to hidden;
          create view pg_catalog.pg_stat_activity as select * from pg_catalog.hidden where false`,
        )
        .simple(),
    )
    const source = await toolsOf(place, { assumesAlone: true })
    const target = await toolsOf(other, { assumesAlone: true })

    const refusal = await rejectionOf(
      source.read((contents) =>
        target.fill(async (filled) => {
          await addPlant(place)
          return copyContents(contents, filled, OPTIONS)
        }),
      ),
    )

    expect(refusal).toMatchObject({
      kind: 'store_unusable',
      message: 'The store was written to while it was copied: end its servers, or use --snapshot.',
    })
    expect(await other.isUnfinished()).toBe(true)
  })

  test('is refused if a server has connected meanwhile', async () => {
    await using place = await POSTGRES.make()
    await fillPlace(place)
    const tools = await toolsOf(place)

    const reading = tools.read(async ({ requireUnchanged }) => {
      const store = await openStore(place.database, () => {})
      await requireUnchanged?.().finally(store.close)
    })

    expect(await rejectionOf(reading)).toMatchObject(OPEN_ELSEWHERE)
  })

  test('is possible while other programs are connected', async () => {
    await using place = await POSTGRES.make()
    await using other = await SQLITE.make()
    await fillPlace(place)

    await administer(place.database, async (sql) => {
      await sql.unsafe('select 1')
      await copy(place, other)
    })

    expect(await other.dump()).toEqual((await place.dump()) as never)
  })
})
