import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { KEPT_WAL_BYTES, LONG_WAL_BYTES } from '../../src/store/sqlite/checkpoints.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { randomNumbers } from '../support/random.ts'
import { createTokenIn } from '../support/tokens.ts'
import { holdTransaction } from './foreign-transaction.ts'
import { plantOf, startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { ROUNDS_TIMEOUT_MS, rounds } from './rounds.ts'
import { countAnswers, until, watchLists } from './watch.ts'

/** How long the snapshot is held once the log has said so, and the pace of creates in that time. */
const HOLD_MS = rounds(0, 180_000)
const PAUSE_MS = 20
/** Successes and lists that show that there are such. */
const ENOUGH = 200

/** Large, so that the WAL grows soon. */
const largePlant = (id: number) => ({ ...plantOf(id), name: `${id} `.padEnd(60_000, 'x') })

/** What a server has logged of its WAL: a level and a size for each line. */
const walLines = (server: { stdout(): string }): [level: string, walBytes: number][] =>
  server
    .stdout()
    .split('\n')
    .filter((line) => line.includes('"walBytes"'))
    .map((line) => JSON.parse(line))
    .map(({ level, walBytes }) => [level, walBytes])

test(
  'a reader that holds a snapshot lets the WAL grow, which the log warns of; when it is gone the WAL shrinks',
  async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const history = startHistory(1, largePlant)
    const answers = countAnswers()
    await using server = await serve(database, ['--access-log', 'off'])
    // Of a user without plants: these are too large to be listed all the time.
    const lists = watchLists(server, await createTokenIn(database, 'you'))
    const begin = () =>
      startLoad({ url: server.url, token, history, random: randomNumbers(1), onAnswer: answers.record })
    const walBytes = () => statSync(`${database}-wal`).size

    const load = begin()
    await until('plants are stored', () => answers.successes() > ENOUGH)
    expect(walLines(server)).toEqual([])
    await using reader = await holdTransaction(database, 'begin', 'select count(*) from plants')
    await until('the log warns of the WAL', () => walLines(server).length > 0)
    await load.stop()
    for (const endMs = performance.now() + HOLD_MS; performance.now() < endMs; await Bun.sleep(PAUSE_MS)) {
      const entry = history.create()
      const response = await server.request('POST', '/plants', { token, body: largePlant(entry.id) })
      history.record(entry, response.status, await response.text())
    }
    const longestBytes = walBytes()
    const warnings = walLines(server)
    const listed = lists.count()
    await until('lists go on', () => lists.count() > listed + ENOUGH)
    await reader.release()

    const after = begin()
    await until('the log says that the WAL is short again', () => walLines(server).length > warnings.length)
    await until('the file of the WAL is short again', () => walBytes() <= KEPT_WAL_BYTES)
    await after.stop()

    // One line for each doubling.
    const doublings = Math.floor(Math.log2(longestBytes / LONG_WAL_BYTES))
    expect(warnings.length).toBeWithin(Math.max(1, doublings), doublings + 2)
    for (const [index, [level, bytes]] of warnings.entries()) {
      expect(level).toBe('warn')
      expect(bytes).toBeWithin(LONG_WAL_BYTES * 2 ** index, LONG_WAL_BYTES * 2 ** (index + 1))
    }
    expect(walLines(server).slice(warnings.length)).toEqual([['info', expect.any(Number)]])
    expect([await lists.stop(), answers.refusals()]).toEqual([[200], []])
    expect(await server.end()).toBe(0)
    history.check(database)
    console.log(`the WAL grew to ${longestBytes} bytes, told by ${warnings.length} warnings`)
  },
  ROUNDS_TIMEOUT_MS,
)
