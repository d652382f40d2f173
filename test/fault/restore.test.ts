import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from '../support/dump.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { contentOf, describeLoss, losePower, putInFolder } from './power-loss/lose.ts'
import { DATABASE, recordCommand, recordFolder, recordProgram } from './power-loss/record.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { traceCalls } from './system-calls.ts'

const SUBSETS = rounds(60, 300)
const PLANTS = 300
/** Writes into a WAL, and is killed before that is brought into the database. */
const DYING = `const { Database } = await import('bun:sqlite')
  const db = new Database(process.argv[1])
  db.run('pragma wal_autocheckpoint = 0')
  db.run("update users set name = 'old, by its WAL'")
  process.kill(process.pid, 'SIGKILL')`

describe.skipIf(lacks(STRACE))('restore --force', () => {
  test(
    'leaves the one database or the other, whole, wherever the power is lost',
    () =>
      runRounds(rounds(1, 5), async (random) => {
        using backups = makeFolder()
        const backup = await makeBackup(backups.path)
        const { events } = await recordFolder(async (path, trace) => {
          const database = join(path, DATABASE)
          await recordCommand(trace, database, 'token', 'create', '--user', 'old')
          await recordProgram(trace, 'sh', '-c', '"$0" -e "$1" "$2" || true', process.execPath, DYING, database)
          await recordCommand(trace, database, 'restore', backup, '--force')
        })
        const first = events.findIndex(
          (event) => event.kind === 'relinked' && event.entries.some(([name]) => name.includes('.partial-')),
        )
        const cuts = events.map((_, index) => index + 1).slice(first)

        const seen = new Map<string, string>()
        for (const loss of losePower(events, cuts, SUBSETS, random)) {
          const content = contentOf(loss.files)
          if (!seen.has(content)) seen.set(content, stateOf(loss))
          const state = seen.get(content) ?? ''
          if (!['old, by its WAL', 'new'].includes(state)) throw new Error(`${state}: ${describeLoss(loss, events)}`)
          if (loss.cut === events.length) expect(state).toBe('new')
        }

        const states = seen.values().toArray()
        expect([...new Set(states)].sort()).toEqual(['new', 'old, by its WAL'])
        console.log(`${cuts.length} cuts, ${states.length} different contents`)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'that is killed leaves the one database or the other, and can be repeated',
    () =>
      runRounds(rounds(3, 60), async (random) => {
        using folder = makeFolder()
        const backup = await makeBackup(folder.path)
        const database = join(folder.path, DATABASE)
        const restore = (under: readonly string[] = []) =>
          runPlantstore(['restore', backup, '--force', '--database', database], { under })
        await createTokenIn(database, 'old')
        using whole = traceCalls({})
        await restore(whole.under)
        const { calls } = await whole.seen()
        for (const name of ['', '-wal', '-shm']) rmSync(database + name, { force: true })
        await createTokenIn(database, 'old')
        const names = ['pwrite64', 'fsync', 'rename', 'unlink', 'ftruncate'] as const
        const made = names.filter((name) => calls.some((call) => call.name === name))
        const name = made[random(made.length)] ?? 'rename'
        const when = String(1 + random(calls.filter((call) => call.name === name).length))
        using trace = traceCalls({ inject: { calls: [name], fault: 'signal=SIGKILL', when } })
        await restore(trace.under)
        expect((await trace.seen()).calls.at(-1)).toMatchObject({ name, isLast: true })

        expect(['old', 'new']).toContain(userIn(database))
        expect(await restore()).toMatchObject({ exitCode: 0 })
        expect(dump(database)).toEqual(dump(backup))
      }),
    ROUNDS_TIMEOUT_MS,
  )
})

/** A backup of a database of user `new`. */
async function makeBackup(folder: string): Promise<string> {
  const [original, backup] = [join(folder, 'original.db'), join(folder, 'backup.db')]
  await createTokenIn(original, 'new')
  addPlants(original, PLANTS)
  await runPlantstore(['backup', backup, '--database', original])
  return backup
}

/** Whose database is there, if it is whole. */
function stateOf(loss: Parameters<typeof putInFolder>[0]): string {
  using files = putInFolder(loss)
  try {
    return userIn(files.database)
  } catch (error) {
    return String(error)
  }
}

function userIn(database: string): string {
  using db = new Database(database, { readwrite: true, create: false })
  const problems = db.prepare('pragma integrity_check').values().flat().join()
  const [[user, plants] = []] = db.prepare('select max(name), (select count(*) from plants) from users').values()
  if (problems !== 'ok') return problems
  return plants === (user === 'new' ? PLANTS : 0) ? String(user) : `${user} with ${plants} plants`
}
