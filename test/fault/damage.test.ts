import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { overwrite } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { type Random, randomNumbers } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { injectFault, STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { startHistory } from './history.ts'
import { type Answered, startLoad } from './load.ts'
import { QUIET } from './restart.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { SYNCS } from './system-calls.ts'
import { countAnswers, fatalReasons, until, untilEnded } from './watch.ts'

/** Successes before the damage, so that the plants fill many pages, and some more at most. */
const BEFORE_MIN = 1500
const MORE_MAX = 1500
const PAGE_BYTES = 4096
/** What the first byte of a page says that has plants and no pages below it (https://sqlite.org/fileformat.html#b_tree_pages). */
const LEAF = 0x0a

const FAILED = '503 50302, Retry-After: 1'
const MESSAGE = 'The store has failed: try again later.'

/** What can become of a page. */
const DAMAGES: readonly ((page: Buffer, random: Random) => void)[] = [
  (page) => page.fill(0),
  (page) => page.fill(0xff),
  fillWithNoise,
  // One that is torn has another half.
  (page, random) => fillWithNoise(page.subarray(0, PAGE_BYTES / 2), random),
]

/** From the failure to the end of the process, and what a machine that is busy with other things may add. */
const END_LIMIT_MS = 1000
const SLACK_MS = 4000

/** How a page is met: which pages are, how many of a hundred writes are deletes, and whether lists are asked for. */
const MEETINGS = {
  'with plants, met by a write': { isMet: hasPlants, deletesPercent: 80, lists: false },
  // New plants are far behind it.
  'with plants, met by a list': { isMet: hasFirstPlants, deletesPercent: 0, lists: true },
  'that is the first': { isMet: (_: Buffer, index: number) => index === 0, deletesPercent: 30, lists: false },
} as const

describe('a page that is damaged under load', () => {
  test.each(Object.entries(MEETINGS))(
    '(%s) ends the server with 3; nothing more is written, check finds it, and put right it is all there is to mend',
    (_, meeting) => runRounds(rounds(1, 7), (random) => damageUnderLoad(meeting, random)),
    ROUNDS_TIMEOUT_MS,
  )
})

test.skipIf(lacks(STRACE))(
  'a page that is damaged ends the server within a second also while a sync hangs',
  async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    addPlants(database, BEFORE_MIN)
    await using server = await serve(database, QUIET)
    damagePage(database, (page) => page[0] === LEAF && page.includes('Monstera 200evergreen'), randomNumbers(1))
    await using fault = await injectFault(server.pid, SYNCS, 'delay_enter=20s')
    const body = { id: BEFORE_MIN + 1, name: 'Fern' }
    void server.request('POST', '/plants', { token, body }).catch(() => undefined)
    await until('the create is in the WAL', () => statSync(`${database}-wal`).size > 0)

    const listed = await server.request('GET', '/plants?limit=2147483647', { token })
    const failedMs = performance.now()
    await until('the process has exited', () => isZombie(server.pid))
    const exitMs = performance.now() - failedMs
    fault.kill()

    expect([listed.status, await server.ended()]).toEqual([503, 3])
    expect(exitMs).toBeLessThan(END_LIMIT_MS + SLACK_MS)
  },
)

async function damageUnderLoad({ isMet, deletesPercent, lists }: Meeting, random: Random): Promise<void> {
  using folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const token = await createTokenIn(database)
  const history = startHistory()
  const answers = countAnswers()
  let sentBefore: number | undefined
  const onAnswer = (answer: Answered) => {
    answers.record(answer)
    if (answer.status === 503) sentBefore ??= history.entries().length
  }
  await using server = await serve(database, QUIET)
  const load = { url: server.url, token, history, random, onAnswer }
  const before = startLoad({ ...load, deletesPercent: 10 })
  await before.acknowledged(BEFORE_MIN + random(MORE_MAX))
  await before.stop()

  const damage = damagePage(database, isMet, random)
  const after = startLoad({ ...load, deletesPercent })
  if (lists) {
    const answer = await server.request('GET', '/plants?limit=2147483647', { token })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await answer.json()).toEqual({ error: 50302, message: MESSAGE })
    sentBefore = history.entries().length
  }
  await until('the page is met', () => sentBefore !== undefined)

  expect(await untilEnded(server)).toBe(3)
  await after.stop()
  const late = history.entries().slice(sentBefore)
  expect(late.filter(({ outcome }) => outcome === 'acknowledged')).toEqual([])
  expect(answers.refusals().filter((refusal) => refusal !== FAILED)).toEqual([])
  expect(fatalReasons(server)).toEqual([expect.stringMatching(/malformed|not a database/)])
  expect(server.stderr()).toBe('')

  const check = await runPlantstore(['check', '--database', database])
  expect(check).toMatchObject({ stdout: '', exitCode: 3 })
  expect(check.stderr).toMatch(/is damaged|cannot be read|is not a database|belongs to another application/)
  damage.repair()
  history.check(database)
}

interface Meeting {
  readonly isMet: (page: Buffer, index: number) => boolean
  readonly deletesPercent: number
  readonly lists: boolean
}

/** Damages one of the pages that are met, in the file alone: nobody has it in memory, and no WAL has it. */
function damagePage(database: string, isMet: Meeting['isMet'], random: Random) {
  emptyWal(database)
  const bytes = readFileSync(database)
  const pages = Array.from({ length: bytes.length / PAGE_BYTES }, (_, index) =>
    bytes.subarray(index * PAGE_BYTES, (index + 1) * PAGE_BYTES),
  )
  const met = pages.flatMap((page, index) => (isMet(page, index) ? [index] : []))
  const index = met[random(met.length)]
  const whole = pages[index ?? -1]
  if (index === undefined || whole === undefined) throw new Error(`none of ${pages.length} pages can be met`)
  const damaged = Buffer.from(whole)
  DAMAGES[random(DAMAGES.length)]?.(damaged, random)
  overwrite(database, index * PAGE_BYTES, damaged)
  return { repair: () => overwrite(database, index * PAGE_BYTES, whole) }
}

/** Brings all into the database's own file, after which everybody reads it anew. */
function emptyWal(database: string): void {
  using db = new Database(database)
  db.run('pragma busy_timeout = 5000')
  expect(db.prepare('pragma wal_checkpoint(truncate)').values()).toEqual([[0, 0, 0]])
}

/** See proc_pid_stat(5). */
const isZombie = (pid: number): boolean => readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')

function hasPlants(page: Buffer): boolean {
  return page.includes('Monstera deliciosa ')
}

function hasFirstPlants(page: Buffer): boolean {
  const ids = [...page.toString('latin1').matchAll(/Monstera deliciosa (\d+) /g)].map(([, id]) => Number(id))
  return page[0] === LEAF && ids.length > 0 && Math.max(...ids) < BEFORE_MIN / 2
}

function fillWithNoise(page: Buffer, random: Random): void {
  for (let index = 0; index < page.length; index++) page[index] = random(256)
}
