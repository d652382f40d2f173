import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { answerOf } from '../cli/support/service-client.ts'
import { damageTable, overwrite, queryAll } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { type Random, randomNumbers } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { SLACK_MS } from '../support/slack.ts'
import { injectFault, STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { rounds, runRounds } from './rounds.ts'
import { fatalReasons, logLines } from './server-log.ts'
import { SYNCS, traceCalls } from './system-calls.ts'
import { expectFailure, makeTestDatabase, QUIET, restart } from './test-database.ts'

/** Successes before the damage: enough that the plants fill many pages, and a random number of further ones. */
const BEFORE_MIN = 1500
const MORE_MAX = 1500
const PAGE_BYTES = 4096
/** The first byte of a leaf page (https://sqlite.org/fileformat.html#b_tree_pages). */
const LEAF = 0x0a

/** The name of the mark after that of the database. */
const MARK = '-damage-found'
/** The user with the fewest rights on most systems. */
const NOBODY = 65534

const MESSAGE = 'The store has failed, nothing was and nothing will be stored: try again later.'

const DAMAGES: readonly ((page: Buffer, random: Random) => void)[] = [
  (page) => page.fill(0),
  (page) => page.fill(0xff),
  fillWithNoise,
  // A torn page has another half.
  (page, random) => fillWithNoise(page.subarray(0, PAGE_BYTES / 2), random),
]

/** From the failure to the end of the process. */
const END_LIMIT_MS = 1000

/** A kind of page, and how the server comes to read the page. */
interface DamagedPage {
  readonly isOne: (page: Buffer, index: number) => boolean
  readonly changesPercent: number
  readonly isListed: boolean
}

const PAGES: Readonly<Record<string, DamagedPage>> = {
  'page with plants that a write reads': { isOne: hasPlants, changesPercent: 80, isListed: false },
  // New plants are far from the first ones.
  'page with plants that a list reads': { isOne: hasFirstPlants, changesPercent: 0, isListed: true },
  'first page': { isOne: (_, index) => index === 0, changesPercent: 30, isListed: false },
}

describe('a server under load', () => {
  test.each(Object.entries(PAGES))(
    'whose %s is damaged ends with 3 and writes nothing more; check finds the damage, and only that page needs repair',
    (_, page) => runRounds(rounds(1, 7), (random) => damageUnderLoad(page, random)),
  )
})

async function damageUnderLoad({ isOne, changesPercent, isListed }: DamagedPage, random: Random): Promise<void> {
  using db = await makeTestDatabase({ random })
  const { database, history, token } = db
  await using server = await db.serve()
  const before = db.startLoad(server, { changesPercent: 10 })
  await before.acknowledged(BEFORE_MIN + random(MORE_MAX))
  await before.stop()

  const damage = damagePage(database, isOne, random)
  let sentBefore: number | undefined
  const after = db.startLoad(server, {
    changesPercent,
    onAnswer({ status }) {
      if (status === 503) sentBefore ??= history.writes().length
    },
  })
  if (isListed) {
    const answer = await server.request('GET', '/plants?limit=2147483647', { token })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await answer.json()).toEqual({ error: 50302, message: MESSAGE })
    // By then all writers may have been refused and have ended.
    sentBefore ??= history.writes().length
  }
  const sentThen = await until('the server reads the page', () => sentBefore)
  await expectFailure(db, server, after, {
    sentBefore: sentThen,
    reason: /malformed|not a database/,
  })

  const check = await runPlantstore(['check', '--database', database])
  expect(check).toMatchObject({ stdout: '', exitCode: 3 })
  expect(check.stderr).toMatch(/is damaged|is not a database|belongs to another application/)
  damage.repair()
  db.check()
}

const hasAddedPlants = (page: Buffer): boolean => page[0] === LEAF && page.includes('Monstera 200evergreen')

test.skipIf(lacks(STRACE))('a damaged page ends the server within a second, also while a sync hangs', async () => {
  using db = await makeTestDatabase()
  const { database, token } = db
  addPlants(database, BEFORE_MIN)
  await using server = await db.serve()
  damagePage(database, hasAddedPlants, randomNumbers(1))
  await using fault = await injectFault(server.pid, SYNCS, 'delay_enter=20s')
  const body = { id: BEFORE_MIN + 1, name: 'Fern' }
  void server.request('POST', '/plants', { token, body }).catch(() => undefined)
  await until('the create is in the WAL', (see) => see(statSync(`${database}-wal`)).size > 0)

  const listed = await server.request('GET', '/plants?limit=2147483647', { token })
  const failedMs = performance.now()
  await until('the process has exited', () => hasExited(server.pid))
  const exitMs = performance.now() - failedMs
  fault.kill()

  expect([listed.status, await server.ended()]).toEqual([503, 3])
  expect(exitMs).toBeLessThan(END_LIMIT_MS + SLACK_MS)
})

describe('the mark of a damaged database', () => {
  test('is left by the first server that lists the page, and refuses all others until restore --force', async () => {
    using db = await makeTestDatabase()
    const { database, token } = db
    addPlants(database, BEFORE_MIN)
    const backup = join(db.folder, 'backup')
    expect(await runPlantstore(['backup', backup, '--database', database])).toMatchObject({ exitCode: 0 })
    damagePage(database, hasAddedPlants, randomNumbers(1))
    // The mark is beside the file, and not beside a link to it.
    using elsewhere = makeFolder()
    const link = join(elsewhere.path, 'link.db')
    symlinkSync(database, link)

    await using first = await serve(link, QUIET)
    const listed = await first.request('GET', '/plants?limit=2147483647', { token })

    expect([listed.status, await first.ended(), statSync(database + MARK).size]).toEqual([503, 3, 0])
    expect(readdirSync(elsewhere.path)).toEqual(['link.db'])
    // The check cannot read on after this page, and tells all the same which one it is.
    expect((await runPlantstore(['check', '--database', database])).stderr).toMatch(/Tree \d+ page \d+/)
    for (let start = 0; start < 5; start++) {
      const text = await db.serve().then(String, ({ message }: Error) => message)
      expect(text).toMatch(
        /exit code 3\n.*so it is checked.*\nplantstore: The database .* is damaged: .* see docs\/how-to\/troubleshoot\.md\.\n$/,
      )
    }
    const restored = await runPlantstore(['restore', backup, '--force', '--database', database])
    expect([restored.exitCode, existsSync(database + MARK)]).toEqual([0, false])
    await using last = await restart(database)
    expect(await (await last.request('GET', '/plants', { token })).json()).toHaveLength(BEFORE_MIN)
    expect(last.stdout()).not.toContain('damage')
  })

  test.each([
    ...['check', 'export', 'user list', 'status', 'import -', 'backup backup'],
    'copy --snapshot --to copy.db --from',
  ])('is left by %s, which is not refused after it, and has the owner of the database', async (command) => {
    using db = await makeTestDatabase()
    damageTable(db.database, 'plants')
    if (process.getuid?.() === 0) chownSync(db.database, NOBODY, NOBODY)
    const args = [...command.split(' '), ...(command.endsWith('--from') ? [] : ['--database']), db.database]
    const options = { cwd: db.folder, stdin: '{"user":"me","id":1,"name":"Fern"}\n' }

    const first = await runPlantstore(args, options)

    expect([first.exitCode, statSync(db.database + MARK).uid]).toEqual([3, statSync(db.database).uid])
    expect(await runPlantstore(args, options)).toEqual(first)
    expect(readdirSync(db.folder).filter((name) => !name.startsWith('plantstore.db'))).toEqual([])
  })

  test('stays for an index that names a missing row, at a start and at a check', async () => {
    using db = await makeTestDatabase()
    const { database } = db
    const token = await createTokenIn(database)
    const [[hash] = []] = queryAll(database, 'select hash from tokens where id = 2')
    truncateWal(database)
    // Behind the hash an entry of the index has the id of the row, and the row has the scope.
    const entry = readFileSync(database).indexOf(Buffer.from([...(hash as Uint8Array), 2]))
    overwrite(database, entry + 32, Uint8Array.of(99))
    await using server = await db.serve()
    expect(await answerOf(server.request('GET', '/plants', { token }))).toMatchObject({ status: 503 })
    expect([await server.ended(), existsSync(database + MARK)]).toEqual([3, true])

    const start = await db.serve().then(String, ({ message }: Error) => message)
    const check = await runPlantstore(['check', '--database', database])

    expect(start).toMatch(
      /exit code 3\n.*so it is checked.*\nplantstore: The database .* is damaged: row 2 missing from index/,
    )
    expect(check).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('row 2 missing from index') })
    expect(existsSync(database + MARK)).toBe(true)
  })

  test.skipIf(lacks(STRACE))('is on disk before the server ends', async () => {
    using db = await makeTestDatabase()
    damageTable(db.database, 'plants')
    using trace = traceCalls()
    await using server = await db.serve(QUIET, { under: trace.under })
    await server.request('GET', '/plants', { token: db.token })
    expect(await server.ended()).toBe(3)

    const { calls } = await trace.seen()
    const after = calls.slice(calls.findLastIndex(({ name, path }) => name === 'pread64' && path === db.database))
    expect(after).toContainEqual(expect.objectContaining({ name: 'fsync', path: db.folder }))
  })

  test.skipIf(lacks(SETPRIV))('is missing if the folder takes no file, and the server ends all the same', async () => {
    using db = await makeTestDatabase()
    damageTable(db.database, 'plants')
    await using server = await db.serve(QUIET, { under: RESTRICTED })
    chmodSync(db.folder, 0o500)
    await server.request('GET', '/plants', { token: db.token })

    expect([await server.ended(), server.stderr(), existsSync(db.database + MARK)]).toEqual([3, '', false])
    expect(fatalReasons(server)).toEqual([expect.stringContaining('malformed')])
  })

  test('goes at the start of a server on a whole database, which says so, and at a check', async () => {
    using db = await makeTestDatabase()
    writeFileSync(db.database + MARK, '')
    await using server = await restart(db.database)
    const warnings = logLines(server).filter(({ level }) => level === 'warn')
    expect(warnings).toMatchObject([
      { msg: 'a process found the database damaged, so it is checked' },
      { msg: 'the check found no damage' },
    ])
    expect([await server.end(), existsSync(db.database + MARK)]).toEqual([0, false])

    writeFileSync(db.database + MARK, '')
    db.check()
    expect(await runPlantstore(['check', '--database', db.database])).toMatchObject({ exitCode: 0 })
    expect(existsSync(db.database + MARK)).toBe(false)
  })

  test('names check in place of a look at a database of more than 4 GiB, and a file with content is none', async () => {
    using db = await makeTestDatabase()
    truncateSync(db.database, 4 * 1024 ** 3 + PAGE_BYTES)
    writeFileSync(db.database + MARK, 'mine')
    await (await restart(db.database)).end()
    expect(readFileSync(db.database + MARK, 'utf8')).toBe('mine')

    truncateSync(db.database, 4 * 1024 ** 3 + PAGE_BYTES)
    truncateSync(db.database + MARK)
    const text = await db.serve().then(String, ({ message }: Error) => message)
    expect(text).toMatch(/exit code 3\nplantstore: .* too large .*: run plantstore check, .*troubleshoot\.md\.\n$/)
    expect(await runPlantstore(['check', '--database', db.database])).toMatchObject({ exitCode: 0 })
    await (await restart(db.database)).end()
  })
})

/** Damages one page of a kind in the database file, after a checkpoint: no process has the page in memory, and no WAL has it. */
function damagePage(database: string, isOne: DamagedPage['isOne'], random: Random) {
  truncateWal(database)
  const bytes = readFileSync(database)
  const pages = Array.from({ length: bytes.length / PAGE_BYTES }, (_, index) =>
    bytes.subarray(index * PAGE_BYTES, (index + 1) * PAGE_BYTES),
  )
  const candidates = pages.flatMap((page, index) => (isOne(page, index) ? [{ page, index }] : []))
  const chosen = candidates[random(candidates.length)]
  if (chosen === undefined) throw new Error(`none of ${pages.length} pages is of that kind`)
  const damaged = Buffer.from(chosen.page)
  DAMAGES[random(DAMAGES.length)]?.(damaged, random)
  overwrite(database, chosen.index * PAGE_BYTES, damaged)
  return { repair: () => overwrite(database, chosen.index * PAGE_BYTES, chosen.page) }
}

/** Moves everything into the database file. Every process reads the file anew after that. */
function truncateWal(database: string): void {
  using db = new Database(database)
  db.run('pragma busy_timeout = 5000')
  expect(db.prepare('pragma wal_checkpoint(truncate)').values()).toEqual([[0, 0, 0]])
}

/** Whether a process has exited: it is a zombie (proc_pid_stat(5)), or has been reaped since. */
function hasExited(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')
  } catch (error) {
    if (error instanceof Error && /ENOENT|ESRCH/.test(error.message)) return true
    throw error
  }
}

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
