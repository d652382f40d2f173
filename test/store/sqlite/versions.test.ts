import { Database } from 'bun:sqlite'
import { describe, expect, spyOn, test } from 'bun:test'
import { CHANGED_USERS_MAX } from '../../../src/store/sqlite/versions/changes.ts'
import {
  announceCommit,
  recordCommit,
  shareLastCommit,
  UNKNOWN_VERSION,
} from '../../../src/store/sqlite/versions/last-commit.ts'
import { trackVersions, type Versions } from '../../../src/store/sqlite/versions/versions.ts'
import type { Call } from '../../../src/store/sqlite/writing/writes.ts'
import { type OpenStore, SQLITE_STORES } from '../../support/stores.ts'
import { createToken, listIds } from '../fixtures.ts'

const CAN_TELL = process.platform === 'linux'
const [ME, YOU] = [1, 2]
const COMMITTED = { isCommitted: true }
const FAILED = { isCommitted: false }
const CREATE: readonly Call[] = [['createPlant', ME, 1n, 'Fern', null]]

describe('what is known of changes', () => {
  test('stays while the commit version does, and while nothing that is under way has been committed', () => {
    const { versions, told } = track()
    const before = told()

    versions.begin(CREATE)
    expect(told()).toEqual(before)
    versions.end(FAILED)

    expect(told()).toEqual(before)
  })

  test('is, from the commit on, that of our own writes: before it was reported, and after', () => {
    const { versions, told, commit } = track()
    const before = told()

    versions.begin(CREATE)
    commit()
    const meanwhile = told()
    versions.end(COMMITTED)

    expect(meanwhile).toEqual({ me: expect.any(Number), you: before.you, tokens: before.tokens })
    expect(meanwhile.me).not.toBe(before.me)
    expect(told()).toEqual(meanwhile)
  })

  test('is the same where nobody asks before the report', () => {
    const { versions, told, commit } = track()
    const before = told()

    versions.begin([['revokeTokens', { userName: 'me' }, 0]])
    commit()
    versions.end(COMMITTED)

    const after = told()
    expect(after).toEqual({ me: before.me, you: before.you, tokens: expect.any(Number) })
    expect(after.tokens).not.toBe(before.tokens)
  })

  test('is that all may have changed, once more users have changed than are known one by one', () => {
    const { versions, told, commit } = track()
    const before = told()
    const others = Array.from({ length: CHANGED_USERS_MAX + 1 }, (_, index) => YOU + 1 + index)
    const change = (users: readonly number[]) => {
      versions.begin(users.map((user): Call => ['createPlant', user, 1n, 'Fern', null]))
      commit()
      versions.end(COMMITTED)
    }

    change(others.slice(1))
    expect(told()).toEqual(before)
    change(others.slice(0, 1))

    expectAllOver(before, told())
  })

  test('is that all may have changed, where somebody else commits', () => {
    const { told, commitElsewhere } = track()
    const before = told()

    commitElsewhere()

    expectAllOver(before, told())
  })

  test.each([
    ['before ours', ['elsewhere', 'ours']],
    ['after ours, which is not reported yet', ['ours', 'elsewhere']],
    ['before ours and after it', ['elsewhere', 'ours', 'elsewhere']],
  ])('is nothing where somebody else commits %s, and then that all may have changed', (_, commits) => {
    const { versions, told, commit, commitElsewhere } = track()
    const before = told()

    versions.begin(CREATE)
    for (const who of commits) {
      if (who === 'ours') commit()
      else commitElsewhere()
    }
    expect(told()).toEqual({ me: undefined, you: undefined, tokens: undefined })
    versions.end(COMMITTED)

    expectAllOver(before, told())
  })

  test('is nothing while a commit is just being reported by the other thread', () => {
    const { versions, told, lastCommit, commitElsewhere } = track()
    const before = told()

    versions.begin(CREATE)
    // The thread has committed, and has not yet said so, or half.
    const recorded = commitElsewhere()
    expect(told()).toEqual({ me: undefined, you: undefined, tokens: undefined })
    lastCommit.versions[0] = BigInt(recorded.before)
    expect(told()).toEqual({ me: undefined, you: undefined, tokens: undefined })
    lastCommit.versions[1] = BigInt(recorded.after)
    expect(told()).toMatchObject({ you: before.you, tokens: before.tokens })
    versions.end(COMMITTED)

    expect(told()).toMatchObject({ me: expect.any(Number), you: before.you, tokens: before.tokens })
    expect(told().me).not.toBe(before.me)
  })

  test("is nothing, and then that all may have changed, where ours was announced and failed, and somebody else's came", () => {
    const { versions, told, lastCommit, commitElsewhere } = track()
    const before = told()

    versions.begin(CREATE)
    announceCommit(lastCommit, commitElsewhere().before)
    expect(told()).toEqual({ me: undefined, you: undefined, tokens: undefined })
    recordCommit(lastCommit, UNKNOWN_VERSION, UNKNOWN_VERSION)
    expect(told()).toEqual({ me: undefined, you: undefined, tokens: undefined })
    versions.end(FAILED)

    expectAllOver(before, told())
  })

  test.each([
    ['after a group of ours that changed nothing', false],
    ['where ours failed, and is done again', true],
  ])("is never that somebody else's commit was ours, wherever the reader is held up: %s", (_, isRepeated) => {
    for (let heldUpAt = 0; heldUpAt < READS_MAX; heldUpAt++) {
      const { versions, told, versionNow, lastCommit, commit, commitElsewhere } = track()
      versions.begin(CREATE)
      recordCommit(lastCommit, versionNow(), versionNow())
      versions.end(COMMITTED)
      const before = told()

      versions.begin(CREATE)
      if (isRepeated) announceCommit(lastCommit, versionNow())
      commitElsewhere()
      const meanwhile = tokensWhileHeldUp(versions, heldUpAt, () => {
        if (isRepeated) recordCommit(lastCommit, UNKNOWN_VERSION, UNKNOWN_VERSION)
        announceCommit(lastCommit, versionNow())
        commit()
      })
      versions.end(COMMITTED)

      expect(meanwhile).not.toBe(before.tokens)
      expectAllOver(before, told())
    }
  })

  test('is that all may have changed, where a group that failed has committed all the same', () => {
    const { versions, told, commit } = track()
    const before = told()

    versions.begin(CREATE)
    commit()
    versions.end(FAILED)

    expectAllOver(before, told())
  })
})

describe.skipIf(!CAN_TELL).each(SQLITE_STORES)(
  `versions, $name${CAN_TELL ? '' : ' (skipped: not told here)'}`,
  ({ open }) => {
    test('can be told whenever nothing is under way, and no more once the store is closed', async () => {
      await using opened = await open()
      const { store } = opened
      const { token } = await createToken(store, 'me')
      const told = () => [typeof store.plantsVersion(token.userId), typeof store.tokensVersion()]

      expect(told()).toEqual(['number', 'number'])
      await Promise.all([1n, 2n, 3n].map((id) => store.createPlant(token.userId, { id, name: 'Fern' })))
      expect(told()).toEqual(['number', 'number'])
      await (await opened.reopen()).deletePlant(token.userId, 1n)
      expect(told()).toEqual(['number', 'number'])
      expect(typeof store.plantsVersion(token.userId + 1)).toBe('number')
      await store.close()

      expect(told()).toEqual(['undefined', 'undefined'])
    })

    test.each(['passive', 'full', 'restart', 'truncate'])('stay through a checkpoint (%s)', async (mode) => {
      await using opened = await open()
      const { store } = opened
      const user = await createPlants(opened, 3)
      const before = [store.plantsVersion(user), store.tokensVersion()]

      checkpoint(opened.database, mode)

      expect([store.plantsVersion(user), store.tokensVersion()]).toEqual(before)
      await store.createPlant(user, { id: 10n, name: 'Ivy' })
      expect(store.plantsVersion(user)).not.toBe(before[0])
      expect(store.tokensVersion()).toBe(before[1])
      expect(await listIds(store, user)).toEqual([0n, 1n, 2n, 10n])
    })
  },
)

/** More than it reads of the memory that it shares to say what has changed. */
const READS_MAX = 8

/** What is told of tokens by a reader who, at one of its reads, is held up for as long as the other thread does its work. */
function tokensWhileHeldUp(versions: Versions, heldUpAt: number, work: () => void) {
  const { load } = Atomics
  let reads = 0
  const readAndWork: (...read: Parameters<typeof load>) => unknown = (...read) => {
    if (reads++ === heldUpAt) work()
    return load(...read)
  }
  // The same, but for when it happens.
  using _ = spyOn(Atomics, 'load').mockImplementation(readAndWork as typeof load)
  const told = versions.tokens()
  if (reads <= heldUpAt) work()
  return told
}

/** What is told of two users and of tokens, while commits change the version. */
function track() {
  let commitVersion = 1000
  const lastCommit = shareLastCommit()
  const versions = trackVersions(() => commitVersion, lastCommit)
  const commitElsewhere = () => {
    const before = commitVersion
    commitVersion += 17
    return { before, after: commitVersion }
  }
  return {
    versions,
    lastCommit,
    versionNow: () => commitVersion,
    told: () => ({ me: versions.plants(ME), you: versions.plants(YOU), tokens: versions.tokens() }),
    commitElsewhere,
    /** As the writer does: it records the versions before anybody hears of the commit. */
    commit() {
      const { before, after } = commitElsewhere()
      recordCommit(lastCommit, before, after)
    },
  }
}

type Told = ReturnType<ReturnType<typeof track>['told']>

function expectAllOver(before: Told, after: Told): void {
  expect(after).toEqual({ me: expect.any(Number), you: expect.any(Number), tokens: expect.any(Number) })
  expect([after.me === before.me, after.you === before.you, after.tokens === before.tokens]).toEqual(
    Array(3).fill(false),
  )
}

async function createPlants({ store }: OpenStore, count: number): Promise<number> {
  const { token } = await createToken(store, 'me')
  for (let id = 0; id < count; id++) await store.createPlant(token.userId, { id: BigInt(id), name: 'Fern' })
  return token.userId
}

/** Brings the WAL into the database as somebody else's program. */
function checkpoint(database: string, mode: string): void {
  using db = new Database(database, { readwrite: true })
  db.run(`pragma wal_checkpoint(${mode})`)
}
