import { describe, expect, test } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../src/cli/cli.ts'
import type { Io } from '../../src/cli/io.ts'
import { LINE_EVERY_MS } from '../../src/cli/long-task.ts'
import { openStore } from '../../src/store/open.ts'
import { queryAll, runSql } from '../store/sqlite/files.ts'
import { inBackground } from '../support/background.ts'
import { makeIo } from '../support/io.ts'
import { addPlants } from '../support/many-plants.ts'
import { withoutProgress } from '../support/progress.ts'
import { createTokenIn } from '../support/tokens.ts'
import { makeDatabase } from './support/database.ts'

/** A database of user `me`, who has plants 1 and 2. `run` runs an import. */
async function makePlants() {
  const made = makeDatabase()
  await createTokenIn(made.database)
  addPlants(made.database, 2)
  const select =
    'select users.name, plants.id, plants.name, tag from plants join users on users.id = user_id order by 1, 2'
  return {
    ...made,
    run: (args: readonly string[], stdin: string | Buffer<ArrayBuffer> = '') => made.feed(stdin, 'import', ...args),
    plants: () => queryAll(made.database, select),
  }
}

const HAD = [
  ['me', 1n, 'Monstera 1', null],
  ['me', 2n, 'Monstera 2', 'evergreen'],
]

const lineOf = (plant: object): string => `${JSON.stringify(plant)}\n`
/** The lines of stderr, without the progress. */
const saidBy = ({ stderr }: { readonly stderr: string }): string[] => withoutProgress(stderr).trim().split('\n')

describe.concurrent('import', () => {
  describe('during which somebody creates one of its plants', () => {
    const lines = Array.from({ length: 10 }, (_, index) => lineOf({ user: 'me', id: index + 3, name: 'Ivy' })).join('')
    const createOne = (database: string) =>
      runSql(database, "insert into plants (user_id, id, name) select id, 8, 'Fern' from users")
    const importLines = async (database: string, args: readonly string[], replaced: Partial<Io>) => {
      const { io, stderr } = makeIo(['import', ...args, '--database', database])
      const stdin = async function* () {
        yield Buffer.from(lines)
      }
      const exitCode = await run({ ...io, stdin, ...replaced })
      return { exitCode, stderr: stderr() }
    }

    test('says how many lines are in and how to import the rest', async () => {
      using made = await makePlants()
      const count = () => Number(queryAll(made.database, 'select count(*) from plants')[0]?.[0])
      let nowMs = 0
      let isCreated = false
      // Runs when the import waits next. It does that between two transactions, when some lines are in and nothing is locked.
      const createOnce = () => {
        if (isCreated || count() === HAD.length) return
        isCreated = true
        createOne(made.database)
      }
      const answer = await importLines(made.database, [], {
        monotonicMs() {
          queueMicrotask(createOnce)
          // So long that each plant is a transaction.
          nowMs += 1000
          return nowMs
        },
      })
      const countStopped = count()
      const rest = await made.run(['--on-conflict', 'skip', '--json'], lines)

      expect([answer.exitCode, ...saidBy(answer)]).toEqual([
        1,
        `The database is ${made.database}, chosen by --database.`,
        'Stopped: 5 of 10 lines are in. Run the same command again with --on-conflict skip to import the rest.',
        'plantstore: Others have created some of these plants meanwhile.',
      ])
      expect(countStopped).toBe(HAD.length + 5 + 1)
      expect(JSON.parse(rest.stdout)).toMatchObject({ lines: 10, created: 4, skipped: 6 })
    })

    test('imports nothing with --atomic, and says so', async () => {
      using made = await makePlants()
      const told: string[] = []
      const { exitCode } = await importLines(made.database, ['--atomic'], {
        async report(lines) {
          // All lines are checked when this is said.
          if (lines.includes('Creates and deletes of servers wait')) createOne(made.database)
          told.push(...[lines].flat())
        },
      })

      expect([exitCode, ...told.slice(-3)]).toEqual([
        1,
        'Creates and deletes of servers wait until all is in, or are refused.',
        'Stopped: nothing was imported. Run the same command again.',
        'plantstore: Others have created some of these plants meanwhile.',
      ])
      expect(made.plants()).toEqual([...HAD, ['me', 8n, 'Fern', null]])
    })
  })

  test.each([[[]], [['--atomic']]])('%j does not count as done if its file was moved meanwhile', async (args) => {
    using made = await makePlants()
    const { io, stderr } = makeIo(['import', ...args, '--database', made.database])
    const stdin = async function* () {
      yield Buffer.from(lineOf({ user: 'me', id: 3, name: 'Ivy' }))
      renameSync(made.database, `${made.database}.moved`)
    }

    expect(await run({ ...io, stdin })).toBe(3)
    expect(stderr()).toContain('plantstore: Whether it was done is unknown: see plantstore export.')
  })

  test('with --on-conflict replace and puts of the same plants at once leave each plant as one of them wrote it', async () => {
    using made = await makePlants()
    const ids = Array.from({ length: 300 }, (_, index) => index + 1)
    const lines = ids.map((id) => lineOf({ user: 'me', id, name: 'Ivy', tag: 'climber' })).join('')
    const store = await openStore(made.database, () => {}, { isServer: true })
    let isImported = false
    let makings = 0
    const put = async () => {
      do {
        const made = await Promise.all(ids.map((id) => store.putPlant(1, { id: BigInt(id), name: 'Moss' })))
        makings += made.filter((isMade) => isMade).length
      } while (!isImported)
    }
    const puts = inBackground([put()])

    const { exitCode } = await made.run(['--on-conflict', 'replace'], lines)
    isImported = true
    await puts
    await store.close()

    expect(exitCode).toBe(0)
    expect(makings).toBeLessThanOrEqual(ids.length - HAD.length)
    const ways: unknown[] = [
      ['Moss', null],
      ['Ivy', 'climber'],
    ]
    expect(made.plants().map(([, id]) => id)).toEqual(ids.map(BigInt))
    for (const [, , ...plant] of made.plants()) expect(ways).toContainEqual(plant)
  })

  test('shows its progress as a share of the file, and as plants', async () => {
    using made = await makePlants()
    const file = join(made.folder, 'plants.jsonl')
    writeFileSync(file, [3, 4, 5].map((id) => lineOf({ user: 'me', id, name: 'x'.repeat(60_000) })).join(''))
    let nowMs = 0
    // Each look at the clock is so late that a line is due.
    const monotonicMs = () => (nowMs += LINE_EVERY_MS)
    const { io, stderr } = makeIo(['import', file, '--database', made.database])
    await run({ ...io, monotonicMs })

    // At last a transaction finds no plant left, and the same line is due again.
    expect([...new Set(stderr().split('\n'))]).toEqual([
      `The database is ${made.database}, chosen by --database.`,
      ...['33 %: 1 plant checked', '66 %: 2 plants checked', '100 %: 3 plants checked'],
      ...['33 %: 1 of 3 plants imported', '66 %: 2 of 3 plants imported', '100 %: 3 of 3 plants imported'],
      `Imported 3 lines into ${made.database}: created 3 plants, skipped 0, replaced 0.`,
      '',
    ])
  })
})
