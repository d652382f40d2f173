import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Store } from '../../src/domain/store.ts'
import type { CopyOptions, CopyTools } from '../../src/store/database.ts'
import { databaseOf, openStore } from '../../src/store/open.ts'
import { type ContentsOptions, copyContents, type Target } from '../../src/store/tools/contents.ts'
import { type EmptyDatabase, KINDS, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { administer, POSTGRES_SERVER, runScript, serverUrl } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { lacks } from '../support/requirement.ts'
import { createToken } from '../support/tokens.ts'
import { rejectionOf } from './fixtures.ts'

const OPTIONS = { onProgress: () => {}, signal: new AbortController().signal }

type Database = Pick<EmptyDatabase, 'database'>

const toolsOf = ({ database }: Database, access: CopyOptions = {}): Promise<CopyTools> =>
  databaseOf(database).copyTools(access)

interface TestedOptions extends Partial<ContentsOptions>, CopyOptions {
  /** Replaces methods of the target. */
  readonly change?: (target: Target) => Partial<Target>
}

/** Copies a store into another one. */
async function copy(from: Database, to: Database, { change = () => ({}), ...options }: TestedOptions = {}) {
  const [source, target] = [await toolsOf(from, options), await toolsOf(to, options)]
  return source.read((contents) =>
    target.fill((filled) => copyContents(contents, { ...filled, ...change(filled) }, { ...OPTIONS, ...options })),
  )
}

/** For `change`: does some work after all rows are inserted, and before they are read back. */
const beforeReading =
  (work: () => Promise<unknown>) =>
  (target: Target): Partial<Target> => ({
    async read(...args) {
      await work()
      return target.read(...args)
    },
  })

/** Writes to a store as a program of its own. */
const writing =
  (write: (store: Store) => Promise<unknown>) =>
  async ({ database }: Database) => {
    const store = await openStore(database, () => {})
    await write(store)
    await store.close()
  }
const addPlant = writing((store) => store.createPlant(1, { id: 2n, name: 'Ivy' }))
const putPlant = writing((store) => store.putPlant(1, { id: 1n, name: 'Ivy' }))
const addToken = writing((store) => createToken(store, { user: 'you' }))
/** Makes a store with a token and a plant. */
const fillPlace = writing(async (store) => {
  await createToken(store)
  await store.createPlant(1, { id: 1n, name: 'Fern' })
})

/** Requires that a copy has left no file, and no row in a PostgreSQL database. */
async function expectNothing(place: EmptyDatabase): Promise<void> {
  const found = await place.dump()
  expect([found?.users ?? [], found?.plants ?? []]).toEqual([[], []])
  if (!place.database.includes('://')) expect(readdirSync(dirname(place.database))).toEqual([])
}

describe.each(KINDS)('a copy from or to $name', (kind) => {
  test('copies the moment at which a snapshot began', async () => {
    await using place = await kind.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    const before = await place.dump()
    const addBetween = (target: Target): Partial<Target> => ({
      async insert(table, rows) {
        if (table === 'users') await addPlant(place)
        await target.insert(table, rows)
      },
    })

    await copy(place, other, { isSnapshot: true, change: addBetween })

    expect(await other.dump()).toEqual(before as never)
    expect((await place.dump())?.plants).toHaveLength(2)
  })

  test('leaves nothing if it differs from its source', async () => {
    await using original = await SQLITE.make()
    await using place = await kind.make()
    await fillPlace(original)
    const rename = (target: Target): Partial<Target> => ({
      insert: (table, rows) =>
        target.insert(table, table === 'plants' ? rows.map((row) => row.with(2, 'another name')) : rows),
    })
    const skipIds = (target: Target): Partial<Target> => ({
      read: ({ userId, tokenId }, use) => target.read({ userId: userId + 1n, tokenId: tokenId + 1n }, use),
    })

    for (const change of [rename, skipIds]) {
      expect(await rejectionOf(copy(original, place, { change }))).toMatchObject({
        kind: 'store_unusable',
        message: expect.stringMatching(/^The copy is not the same: .+ instead of .+\.$/),
      })
      await expectNothing(place)
    }
  })

  test('reports for each stage how many plants it is done with', async () => {
    await using place = await kind.make()
    await using other = await SQLITE.make()
    await fillPlace(place)
    await addPlant(place)
    const told: unknown[] = []

    await copy(place, other, { onProgress: (...progress: readonly unknown[]) => void told.push(progress) })

    expect(told).toEqual(['copied', 'verified'].map((stage) => [stage, 2, 2]))
  })

  test('refuses one of two copies into the same store', async () => {
    await using original = await SQLITE.make()
    await using place = await kind.make()
    await fillPlace(original)
    const outcomes: string[] = []
    const attempt = (options: TestedOptions) =>
      copy(original, place, { ...options, isSnapshot: true }).then(
        () => outcomes.push('copied'),
        ({ kind }) => outcomes.push(kind),
      )

    await attempt({ change: beforeReading(() => attempt({})) })

    expect(outcomes.toSorted()).toEqual(['copied', 'store_unusable'])
    expect(await place.dump()).toEqual((await original.dump()) as never)
  })

  test('leaves nothing when it is stopped', async () => {
    await using original = await SQLITE.make()
    await using place = await kind.make()
    await fillPlace(original)
    const stopped = new AbortController()
    const stop = () => stopped.abort(new Error('enough'))

    const reason = await rejectionOf(copy(original, place, { signal: stopped.signal, onProgress: stop }))
    await expectNothing(place)
    await copy(original, place)

    expect(reason).toMatchObject({ message: 'enough' })
    expect(await place.dump()).toEqual((await original.dump()) as never)
  })
})

describe.skipIf(lacks(POSTGRES_SERVER))('a copy from PostgreSQL', () => {
  test.each([
    ['a plant', addPlant],
    ['a plant that is replaced', putPlant],
    ['a token', addToken],
  ])('leaves nothing if %s was written meanwhile', async (_, write) => {
    await using place = await POSTGRES.make()
    await using other = await SQLITE.make()
    await fillPlace(place)

    const refusal = await rejectionOf(copy(place, other, { change: beforeReading(() => write(place)) }))

    expect(refusal).toMatchObject({
      kind: 'store_unusable',
      message: 'The store was written to while it was copied: end its servers, or use --snapshot.',
    })
    await expectNothing(other)
  })

  test('and back into PostgreSQL is exact whatever bytea_output and the timeouts of the databases are', async () => {
    await using place = await POSTGRES.make()
    await using other = await SQLITE.make()
    await using back = await POSTGRES.make()
    await fillPlace(place)
    const before = await place.dump()
    const settings = { bytea_output: 'escape', idle_in_transaction_session_timeout: '400', statement_timeout: '400' }
    const alter = async (change: (name: string, value: string) => string) => {
      for (const { database } of [place, back]) {
        const changes = Object.entries(settings).map((setting) => change(...setting))
        const script = changes.map((each) => `alter database ${new URL(database).pathname.slice(1)} ${each}`).join('; ')
        await runScript(await serverUrl(), script)
      }
    }
    // Longer than the timeouts of the databases.
    const change = beforeReading(() => Bun.sleep(500))
    using proxy = startPostgresProxy(await serverUrl())
    const names = new Set<string | undefined>()
    proxy.decide((_, bytes) => {
      for (const [, name] of bytes.toString('latin1').matchAll(/set_config\(([^,]*)/g)) names.add(name)
      return 'pass'
    })

    await alter((name, value) => `set ${name} = '${value}'`)
    await copy({ database: proxy.by(place.database) }, other, { change })
    await copy(other, { database: proxy.by(back.database) }, { change })
    await alter((name) => `reset ${name}`)

    expect(await back.dump()).toEqual(before as never)
    // Multigres parses the statements, and refuses names that are no literals.
    expect(names.size).toBeGreaterThan(3)
    expect([...names].filter((name) => !/^'\w+'$/.test(`${name}`))).toEqual([])
  })
})

describe.skipIf(lacks(POSTGRES_SERVER))('a copy to PostgreSQL whose connection is lost at the commit', () => {
  /** Copies by a proxy that does something when it sees the commit. Resolves to the message of its error, if there is one. */
  async function copyUntil(place: EmptyDatabase, atCommit: 'passThenCut' | 'hold', change?: () => Promise<void>) {
    await using original = await SQLITE.make()
    await fillPlace(original)
    using proxy = startPostgresProxy(await serverUrl())
    let [isFilled, cuts, isHeld] = [false, 0, false]
    proxy.decide((from, bytes) => {
      if (from === 'server') return 'pass'
      if (cuts > 0) return isHeld ? 'hold' : 'pass'
      isFilled ||= bytes.includes('update plantstore.counters')
      if (!isFilled || !/\bcommit\b/i.test(bytes.toString('latin1'))) return 'pass'
      cuts++
      isHeld = atCommit === 'hold'
      // The look at the outcome comes after the change.
      void change?.().then(() => {
        isHeld = false
        proxy.leadTo(place.database)
      })
      return atCommit
    })
    const messages: string[] = []
    await copy(original, { database: proxy.by(place.database) }).catch(({ message }) =>
      messages.push(message.replaceAll(/postgres:\S+/g, 'it')),
    )

    expect(cuts).toBe(1)
    return { messages, isCommitted: Bun.deepEquals(await place.dump(), await original.dump()) }
  }

  test('succeeds if the database has committed it', async () => {
    await using place = await POSTGRES.make()

    expect(await copyUntil(place, 'passThenCut')).toEqual({ messages: [], isCommitted: true })
  })

  test('says that the copy is not committed if the database has not read the commit', async () => {
    await using place = await POSTGRES.make()

    expect(await copyUntil(place, 'hold', async () => {})).toEqual({
      messages: ['The connection to it was lost at the commit. The copy is not committed: run the same command again.'],
      isCommitted: false,
    })
    await expectNothing(place)
  })

  test('says that the outcome is unknown if another process has changed tokens since', async () => {
    await using place = await POSTGRES.make()
    const changeTokens = () =>
      administer(place.database, async (sql) => {
        await sql.unsafe(
          "select pg_terminate_backend(pid) from pg_locks join pg_class on oid = relation where relname = 'counters' and pid <> pg_backend_pid()",
        )
        await sql.unsafe('update plantstore.counters set tokens_stamp = 7')
      })

    expect(await copyUntil(place, 'hold', changeTokens)).toMatchObject({
      messages: [expect.stringContaining('Whether the copy is committed is unknown: run the same command again, ')],
      isCommitted: false,
    })
  })
})
