import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openReader, rowsOf } from '../../src/engine/sqlite/driver.ts'
import { findProblems } from '../../src/engine/sqlite/migrate.ts'
import { cloneDatabase } from '../../src/engine/sqlite/tools/clone-database.ts'
import { makeFolder } from '../support/folder.ts'
import { COUNTERS_FORMAT } from './toy/counters.ts'

const ROUNDS = 20
/** A round ends after a number of acknowledged writes that differs from round to round. */
const WRITES_OF_ROUND = (round: number) => 1 + ((round * 37) % 50)

test(`a product that counts for owners loses no acknowledged count in ${ROUNDS} rounds that SIGKILL ends`, async () => {
  using folder = makeFolder()
  const path = join(folder.path, 'counters.db')
  let counts = new Map<bigint, bigint>()

  for (let round = 0; round < ROUNDS; round++) {
    const acknowledged = await countUntilKilled(path, WRITES_OF_ROUND(round))
    const stored = countsIn(path)
    let underWay = 0n
    for (const owner of [0n, 1n, 2n]) {
      const more =
        (stored.get(owner) ?? 0n) -
        (counts.get(owner) ?? 0n) -
        BigInt(acknowledged.filter((each) => each === owner).length)
      expect(more).toBeOneOf([0n, 1n])
      underWay += more
    }
    expect(underWay).toBeLessThanOrEqual(1n)
    counts = stored
  }

  const source = { format: COUNTERS_FORMAT, role: 'database', path, dropped: [] } as const
  const cloned = await cloneDatabase(source, join(folder.path, 'clone.db'), {})
  expect(cloned).toMatchObject({ counters: 3, dropped: '' })
  expect(countsIn(cloned.path)).toEqual(counts)
})

/** Has a process count until it has acknowledged so many writes, and kills it. Returns the owners in its whole output. */
async function countUntilKilled(path: string, writes: number): Promise<readonly bigint[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'toy/count.ts'), path], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const decoder = new TextDecoder()
  let text = ''
  for await (const part of child.stdout) {
    text += decoder.decode(part)
    if (text.split('\n').length > writes) child.kill('SIGKILL')
  }
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
  return text.split('\n').slice(0, -1).map(BigInt)
}

function countsIn(path: string): Map<bigint, bigint> {
  using db = openReader(path, { recovers: true })
  expect(findProblems(db, COUNTERS_FORMAT)).toEqual([])
  return new Map(rowsOf<[bigint, bigint]>(db, 'select owner, count from counters'))
}
