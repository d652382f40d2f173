import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { valuesOf } from '../../../src/domain/plant.ts'
import { OTHERS_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { openReader } from '../../../src/engine/sqlite/driver.ts'
import { migrate } from '../../../src/engine/sqlite/migrate.ts'
import {
  addChange,
  announceChanges,
  CHECK_AFTER,
  type ChangedSlots,
  readVersions,
  shareChanges,
  shareCheckTime,
  type Version,
} from '../../../src/engine/sqlite/versions.ts'
import { kindOf } from '../../../src/error.ts'
import { NO_PLANT } from '../../../src/store/preconditions.ts'
import { PLANT_FORMAT } from '../../../src/store/sqlite/format.ts'
import { type Call, createWrites, PLANT_STORE } from '../../../src/store/sqlite/writing/writes.ts'
import { makeDatabaseFolder, makeWithWriter } from '../../store/sqlite/files.ts'
import { type Random, randomNumbers, seedsOf } from '../../support/random.ts'

/** The three tests take more than 100 000 steps together. */
const STEPS = 34_000
const [SEED = 1] = seedsOf('PROPERTY_SEED', 1)
/** Users 1 and 1025 share a slot. */
const USERS = [1, 2, 1025]
/** Most lists end at this length, so that creates behind them matter. */
const LIST_PLANTS = 3
/** So often the world changes which of its parts are busy. */
const EPOCH_STEPS = 300
/** Half of the ids are in lists, the others mostly behind them. */
const LISTED_IDS = 20
const IDS = 400

const byId = ([a]: readonly [bigint, string], [b]: readonly [bigint, string]): number => (a < b ? -1 : 1)

/** So many threads read, each with a connection, a cache and a clock of its own. */
const READERS = 3
/** How far the clock of a thread is ahead of that of the thread before. */
const CLOCK_STEP_MS = 1000

/** The names of the plants of each user at one moment, by user and id. */
type State = ReadonlyMap<number, ReadonlyMap<bigint, string>>

interface CachedList {
  readonly version: Version
  readonly plants: readonly (readonly [id: bigint, name: string])[]
  /** The id after which more plants follow, if any do. */
  readonly next: bigint | undefined
}

/**
 * One thread that takes the steps of the writer, the readers, another process and the clock one by one, at random. So each
 * interleaving can happen, and the same seed repeats it.
 */
function startWorld(path: string, random: Random, changesBefore = 0) {
  const pickId = () => random(random(2) === 0 ? LISTED_IDS : IDS)
  const pickUser = () => USERS[random(USERS.length)] as number
  const writer = makeWithWriter(path)
  migrate(writer, path, PLANT_FORMAT)
  for (const user of USERS)
    writer.run('insert into users (id, name, created_at_ms) values (?1, ?2, 0)', [user, `u${user}`])
  const other = new Database(path)
  other.run('pragma foreign_keys = on')
  let nowMs = 0
  const changes = shareChanges()
  for (const counters of [changes.begun, changes.ended]) counters.fill(changesBefore)
  const announced = announceChanges(writer, changes, () => {})
  const writes = createWrites(writer)
  const readers = Array.from({ length: READERS }, (_, number) => {
    const db = openReader(path)
    const select = db.prepare<{ id: bigint; name: string }, [number]>(
      `select id, name from plants where user_id = ?1 order by id limit ${LIST_PLANTS + 1}`,
    )
    const selectDataVersion = db.prepare('pragma data_version')
    const checkedAtMs = shareCheckTime()
    /** Checks that the writer has been asked for and has not done yet. */
    const requests: number[] = []
    const monotonicMs = () => nowMs + number * CLOCK_STEP_MS
    const versions = readVersions(changes, {
      checkedAtMs,
      requestCheck: (askedAtMs) => requests.push(askedAtMs),
      dataVersion: () => selectDataVersion.values()[0]?.[0],
      monotonicMs,
      othersSeenWithinMs: OTHERS_SEEN_WITHIN_MS,
    })
    return { db, select, checkedAtMs, requests, monotonicMs, versions, cache: new Map<number, CachedList>() }
  })
  const pickReader = () => readers[random(READERS)] as (typeof readers)[number]

  /** Every state since the beginning, with the time of its commit, and whether it was answered or is another's. */
  const history: { state: State; atMs: number; isOurs: boolean; isAnswered: boolean }[] = [
    { state: new Map(), atMs: nowMs, isOurs: true, isAnswered: true },
  ]
  const currentState = () => (history.at(-1) as (typeof history)[number]).state
  /** Records a commit that stored or deleted plants of a user. */
  const record = (user: number, changed: ReadonlyMap<bigint, string | undefined>, isOurs: boolean) => {
    const after = new Map(currentState().get(user))
    for (const [id, name] of changed) {
      if (name === undefined) after.delete(id)
      else after.set(id, name)
    }
    history.push({
      state: new Map(currentState()).set(user, new Map([...after].sort(byId))),
      atMs: nowMs,
      isOurs,
      isAnswered: false,
    })
  }
  /** The first state that an answer may show now: all own answered commits, and those of others that are old enough. */
  const oldestAllowed = () =>
    history.findLastIndex(({ isOurs, isAnswered, atMs }) =>
      isOurs ? isAnswered : nowMs - atMs >= OTHERS_SEEN_WITHIN_MS,
    )

  const hasPlant = (user: number, id: bigint) => currentState().get(user)?.has(id) ?? false

  /** The steps of a group of a user's writes, which one or more readers asked for, in the order of the group commit. */
  function* write(): Generator<void> {
    const user = pickUser()
    const ids = new Set(Array.from({ length: 1 + random(3) }, () => BigInt(pickId())))
    const asked = readers.slice(random(READERS)).map((reader) => [reader.checkedAtMs, reader.monotonicMs()] as const)
    yield
    writer.run('begin immediate')
    yield
    for (const [checkedAtMs, askedAtMs] of asked) announced.checkOthers(checkedAtMs, askedAtMs)
    const name = `${history.length}`
    const values = valuesOf({ name })
    const changes = new Map<bigint, string | undefined>()
    const changed: ChangedSlots = new Map()
    const refused = new Set<number>()
    const group = [...ids].map((id, index): Call => {
      const isThere = hasPlant(user, id)
      const kind = random(4)
      // A put with this condition is refused.
      if (kind === 0) refused.add(index)
      else changes.set(id, kind === 1 || !isThere ? name : undefined)
      if (kind <= 1) return ['putPlant', user, `${id}`, values, kind === 1 ? 'any' : NO_PLANT]
      return isThere ? ['deletePlant', user, `${id}`] : ['createPlant', user, `${id}`, ...values]
    })
    for (const [index, call] of group.entries()) {
      const [name, ...values] = call
      try {
        Reflect.apply(writes[name], undefined, values)
        addChange(changed, PLANT_STORE.invalidates(call))
      } catch (error) {
        expect([refused.has(index), kindOf(error)]).toEqual([true, 'precondition_failed'])
      }
    }
    yield
    announced.begin(changed)
    yield
    if (random(10) === 0) writer.run('rollback')
    else {
      writer.run('commit')
      record(user, changes, true)
    }
    const committed = history.length - 1
    yield
    announced.end(changed)
    yield
    for (const each of history.slice(0, committed + 1)) if (each.isOurs) each.isAnswered = true
  }

  /** The steps of a list: from the cache if that is allowed, else from the database and into the cache. */
  let hits = 0
  function* list(): Generator<void> {
    const user = pickUser()
    const { select, versions, cache } = pickReader()
    const version = versions.owner(user)
    const cached = cache.get(user)
    const isSame = version !== undefined && cached?.version === version
    const isStill =
      isSame || (cached?.next !== undefined && versions.isUnchangedUpTo(user, cached.version, cached.next))
    if (cached !== undefined && isStill) {
      hits++
      const allowed = history.slice(oldestAllowed()).map(({ state }) =>
        headOf(
          state
            .get(user)
            ?.entries()
            .take(LIST_PLANTS + 1)
            .toArray() ?? [],
        ),
      )
      expect<unknown[]>(allowed).toContainEqual({ plants: cached.plants, next: cached.next })
      return
    }
    yield
    const rows = Array.from(select.iterate(user), ({ id, name }) => [id, name] as const)
    yield
    if (version !== undefined) cache.set(user, { version, ...headOf(rows) })
  }

  const headOf = (plants: CachedList['plants']) => {
    const shown = plants.slice(0, LIST_PLANTS)
    return { plants: shown, next: plants.length > LIST_PLANTS ? shown.at(-1)?.[0] : undefined }
  }

  const changeByOther = () => {
    if (writer.inTransaction) return
    const user = pickUser()
    const id = BigInt(pickId())
    const isThere = hasPlant(user, id)
    if (isThere) other.run('delete from plants where user_id = ?1 and id = ?2', [user, id])
    else other.run(`insert into plants (user_id, id, name) values (?1, ?2, 'Ivy')`, [user, id])
    record(user, new Map([[id, isThere ? undefined : 'Ivy']]), false)
  }

  let writing: Generator<void> | undefined
  const listing = Array.from({ length: 4 }, list)
  let steps = 0
  let weights: number[] = []
  const pickWeighted = (each: readonly number[]): number => {
    let rest = random(each.reduce((sum, weight) => sum + weight, 0))
    return each.findIndex((weight) => {
      rest -= weight
      return rest < 0
    })
  }
  return {
    step(): void {
      if (steps++ % EPOCH_STEPS === 0) weights = [20, 40, 6, 10, 5, 2].map((weight) => weight * random(3))
      weights[1] = random(2) === 0 ? 2 : 40
      switch (pickWeighted(weights)) {
        case 0:
          writing ??= write()
          if (writing.next().done) writing = undefined
          break
        case 1: {
          const index = random(listing.length)
          if (listing[index]?.next().done) listing[index] = list()
          break
        }
        case 2:
          changeByOther()
          break
        case 3:
          nowMs += random(15)
          break
        case 4: {
          // The thread that writes does one thing at a time: a group that has begun comes first.
          if (writer.inTransaction) break
          const { checkedAtMs, requests } = pickReader()
          const askedAtMs = requests.shift()
          if (askedAtMs !== undefined) announced.checkOthers(checkedAtMs, askedAtMs)
          break
        }
        default:
          if (!writer.inTransaction) writer.run('pragma wal_checkpoint(passive)')
      }
    },
    hits: () => hits,
    changesByOther: () => history.filter(({ isOurs }) => !isOurs).length,
    [Symbol.dispose]() {
      for (const db of [...readers.map((reader) => reader.db), other, writer]) db.close()
    },
  }
}

describe('versions of what was read', () => {
  test.each([
    ['from the beginning', 0],
    ['over 2^31 changes', 2 ** 31 - 200],
    ['over 2^32 changes', 2 ** 32 - 200],
  ])(
    `never let a cached list be older than the contract allows, in ${STEPS} steps at random, %s`,
    (_, changesBefore) => {
      using files = makeDatabaseFolder()
      console.log(`PROPERTY_SEED=${SEED}`)
      using world = startWorld(files.path, randomNumbers(SEED), changesBefore)

      for (let step = 0; step < STEPS; step++) world.step()

      expect(world.hits()).toBeGreaterThan(STEPS / 100)
      expect(world.changesByOther()).toBeGreaterThan(STEPS / 200)
    },
  )

  test('know a change of the highest id', () => {
    const changed = new Map<number, bigint>()
    addChange(changed, { owner: 1, lowestId: 2n ** 63n - 1n })
    expect([...changed.values()]).toEqual([2n ** 63n - 1n])
  })

  test('are unknown after a pause, until a check', () => {
    let nowMs = 0
    const requests: number[] = []
    const checkedAtMs = shareCheckTime()
    const versions = readVersions(shareChanges(), {
      checkedAtMs,
      requestCheck: (askedAtMs) => requests.push(askedAtMs),
      dataVersion: () => undefined,
      monotonicMs: () => nowMs,
      othersSeenWithinMs: OTHERS_SEEN_WITHIN_MS,
    })
    const completeCheck = () => Atomics.store(checkedAtMs, 0, BigInt(nowMs))
    nowMs = CHECK_AFTER * OTHERS_SEEN_WITHIN_MS + 1
    completeCheck()
    expect(versions.shared()).toBeNumber()

    nowMs = 50 * 86_400_000

    expect([versions.shared(), versions.shared(), requests]).toEqual([undefined, undefined, [nowMs]])
    completeCheck()
    expect(versions.shared()).toBeNumber()
  })
})
