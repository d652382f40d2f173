import { describe, expect, test } from 'bun:test'
import { parsePostgresUrl } from '../../src/domain/database-url.ts'
import { openStore } from '../../src/store/open.ts'
import { readPostgres } from '../../src/store/postgres/tools/copy-source.ts'
import { fillPostgres } from '../../src/store/postgres/tools/copy-target.ts'
import { readSqlite } from '../../src/store/sqlite/tools/copy-source.ts'
import { fillSqlite } from '../../src/store/sqlite/tools/copy-target.ts'
import type { Source, Target } from '../../src/store/tools/contents.ts'
import { copyContents } from '../../src/store/tools/copy-contents.ts'
import { type EmptyPlace, POSTGRES, SQLITE } from '../support/copy-places.ts'
import { administer, POSTGRES_SERVER } from '../support/postgres.ts'
import { rejectionOf } from '../support/rejection.ts'
import { lacks } from '../support/requirement.ts'
import { createToken } from '../support/tokens.ts'

const connectionOf = ({ database }: EmptyPlace) => {
  const address = parsePostgresUrl(database)
  if (typeof address === 'string') throw new Error(address)
  return { address, passwordFile: undefined, prepares: false }
}

const KINDS = [
  {
    kind: SQLITE,
    isSkipped: false,
    read: <T>({ database }: EmptyPlace, isSnapshot: boolean, use: (source: Source) => Promise<T>) =>
      readSqlite(database, { isSnapshot }, use),
    fill: <T>({ database }: EmptyPlace, fill: (target: Target) => Promise<T>) => fillSqlite(database, fill),
  },
  {
    kind: POSTGRES,
    isSkipped: lacks(POSTGRES_SERVER),
    read: <T>(place: EmptyPlace, isSnapshot: boolean, use: (source: Source) => Promise<T>) =>
      readPostgres(connectionOf(place), { isSnapshot }, use),
    fill: <T>(place: EmptyPlace, fill: (target: Target) => Promise<T>) => fillPostgres(connectionOf(place), fill),
  },
]

const options = { onProgress: () => {}, signal: new AbortController().signal }

/** Makes a store with a token and a plant, and what changes it like another process. */
async function fillPlace({ database }: EmptyPlace): Promise<void> {
  const store = await openStore(database, () => {})
  await createToken(store)
  await store.createPlant(1, { id: 1n, name: 'Fern' })
  await store.close()
}

async function addPlant({ database }: EmptyPlace, id: bigint): Promise<void> {
  const store = await openStore(database, () => {})
  await store.createPlant(1, { id, name: 'Ivy' })
  await store.close()
}

describe.each(KINDS)('a copy and $kind.name', ({ kind, isSkipped, read, fill }) => {
  test.skipIf(isSkipped)('a snapshot is the moment at which it began', async () => {
    await using place = await kind.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    const before = await place.dump()

    await read(place, true, async (source) => {
      await addPlant(place, 2n)
      await fillSqlite(other.database, (target) => copyContents(source, target, options))
    })

    expect(await other.dump()).toEqual(before as never)
    expect((await place.dump())?.plants).toHaveLength(2)
  })

  test.skipIf(isSkipped)('a target that turns out to be another is not finished', async () => {
    await using original = await SQLITE.make()
    await using place = await kind.make()
    await fillPlace(original)
    const tampering = (target: Target): Target => ({
      ...target,
      async insert(table, rows) {
        await target.insert(
          table,
          table === 'plants' ? rows.map(([user, id, name]) => [user ?? null, id ?? null, `${name}!`, null]) : rows,
        )
      },
    })

    const copying = readSqlite(original.database, { isSnapshot: false }, (source) =>
      fill(place, (target) => copyContents(source, tampering(target), options)),
    )

    expect(await rejectionOf(copying)).toMatchObject({
      kind: 'store_unusable',
      message: expect.stringMatching(/^The copy is not the same: .+ instead of .+\.$/),
    })
    expect(await place.isUnfinished()).toBe(true)
    expect(await rejectionOf(openStore(place.database, () => {}))).toMatchObject({
      kind: 'store_unusable',
      message: expect.stringContaining('is a copy that is not finished'),
    })
  })

  test.skipIf(isSkipped)('tell of each stage how many plants are done', async () => {
    await using place = await kind.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    await addPlant(place, 2n)
    const told: unknown[] = []
    const onProgress = (...progress: readonly unknown[]) => void told.push(progress)

    await read(place, false, (source) =>
      fillSqlite(other.database, (target) => copyContents(source, target, { ...options, onProgress })),
    )

    // What keeps others from writing need not be compared.
    const stages = kind === SQLITE ? ['copied', 'verified'] : ['copied', 'verified', 'compared']
    expect(told).toEqual(stages.map((stage) => [stage, 2, 2]))
  })

  test.skipIf(isSkipped)('one copy at a time fills a store', async () => {
    await using place = await kind.make()
    let second: unknown

    await fill(place, async () => {
      second = await rejectionOf(fill(place, async () => {}))
    })

    expect(second).toMatchObject({
      kind: 'store_unusable',
      message: expect.stringContaining('open in another process'),
    })
    expect(await place.isUnfinished()).toBe(true)
  })

  test.skipIf(isSkipped)('one that is stopped is not finished, and is started over', async () => {
    await using original = await SQLITE.make()
    await using place = await kind.make()
    await fillPlace(original)
    const stopped = new AbortController()
    const copying = (signal: AbortSignal, onProgress: () => void) =>
      readSqlite(original.database, { isSnapshot: false }, (source) =>
        fill(place, (target) => copyContents(source, target, { signal, onProgress })),
      )

    const reason = await rejectionOf(copying(stopped.signal, () => stopped.abort(new Error('enough'))))
    const wasUnfinished = await place.isUnfinished()
    await copying(options.signal, () => {})

    expect(reason).toMatchObject({ message: 'enough' })
    expect(wasUnfinished).toBe(true)
    expect(await place.dump()).toEqual((await original.dump()) as never)
  })
})

describe.skipIf(lacks(POSTGRES_SERVER))('a copy from PostgreSQL', () => {
  test.each([
    ['a plant', (place: EmptyPlace) => addPlant(place, 2n)],
    [
      'a token',
      async ({ database }: EmptyPlace) => {
        const store = await openStore(database, () => {})
        await createToken(store, { user: 'you' })
        await store.close()
      },
    ],
  ])('is refused where %s was written meanwhile', async (_, write) => {
    await using place = await POSTGRES.make()
    await using other = await SQLITE.make()
    await fillPlace(place)

    const writing = (target: Target): Target => ({
      ...target,
      async finish() {
        throw new Error('it was finished')
      },
      async read(use) {
        await write(place)
        return target.read(use)
      },
    })
    const copying = readPostgres(connectionOf(place), { isSnapshot: false }, (source) =>
      fillSqlite(other.database, (target) => copyContents(source, writing(target), options)),
    )

    expect(await rejectionOf(copying)).toMatchObject({
      kind: 'store_unusable',
      message: 'The store was written to while it was copied: end its servers, or use --snapshot.',
    })
    expect(await other.isUnfinished()).toBe(true)
  })

  test('is refused where a server came meanwhile', async () => {
    await using place = await POSTGRES.make()
    await fillPlace(place)

    const reading = readPostgres(connectionOf(place), { isSnapshot: false }, async ({ readAgain }) => {
      const store = await openStore(place.database, () => {})
      try {
        await readAgain?.(async () => {})
      } finally {
        await store.close()
      }
    })

    expect(await rejectionOf(reading)).toMatchObject({
      kind: 'store_unusable',
      message: expect.stringContaining('is open in another process: end it, or use --snapshot.'),
    })
  })

  test('is not kept from it by connections of others', async () => {
    await using place = await POSTGRES.make()
    await fillPlace(place)

    await administer(place.database, async (sql) => {
      await sql.unsafe('select 1')
      await readPostgres(connectionOf(place), { isSnapshot: false }, async ({ readAgain }) => {
        await readAgain?.(async () => {})
      })
    })
  })
})
