import { Database } from 'bun:sqlite'
import { describe, expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from '../support/dump.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { contentOf, describeLoss, type Loss, losePower, putInFolder } from './power-loss/losses.ts'
import { DATABASE, recordCommand, recordFolder, recordProgram } from './power-loss/recording.ts'
import { rounds, testRounds } from './rounds.ts'
import { killAt, pickCall, traceCalls } from './system-calls.ts'

const SUBSETS = rounds(60, 300)
const PLANTS = 300
const OLD_BY_WAL = 'old, by its WAL'
/** Writes to a WAL and dies before a checkpoint. */
const DYING = `const { Database } = await import('bun:sqlite')
  const db = new Database(process.argv[1])
  db.run('pragma wal_autocheckpoint = 0')
  db.run("update users set name = '${OLD_BY_WAL}'")
  process.kill(process.pid, 'SIGKILL')`
/** The calls that change files. */
const CHANGES = ['pwrite64', 'fsync', 'rename', 'unlink', 'ftruncate'] as const

describe('restore --force', () => {
  testRounds(
    'leaves the old database or the new one, whole, wherever the power is lost',
    { short: 1, long: 5, needs: [STRACE] },
    async (random) => {
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
        const state = seen.get(content) ?? stateOf(loss)
        seen.set(content, state)
        if (![OLD_BY_WAL, 'new'].includes(state)) throw new Error(`${state}: ${describeLoss(loss, events)}`)
        if (loss.cut === events.length) expect(state).toBe('new')
      }

      expect([...new Set(seen.values())].sort()).toEqual(['new', OLD_BY_WAL])
      console.log(`${cuts.length} cuts, ${seen.size} different contents`)
    },
  )

  testRounds(
    'that is killed leaves the old database or the new one, and can be repeated',
    { short: 3, long: 60, needs: [STRACE] },
    async (random) => {
      using folder = makeFolder()
      const backup = await makeBackup(folder.path)
      const database = join(folder.path, DATABASE)
      const restore = (under: readonly string[] = []) =>
        runPlantstore(['restore', backup, '--force', '--database', database], { under })
      await createTokenIn(database, 'old')
      using whole = traceCalls()
      await restore(whole.under)
      const { name, when } = pickCall((await whole.seen()).calls, random, CHANGES)
      for (const suffix of ['', '-wal', '-shm']) rmSync(database + suffix, { force: true })
      await createTokenIn(database, 'old')
      using trace = traceCalls({ inject: killAt(name, when) })
      await restore(trace.under)
      expect((await trace.seen()).calls.at(-1)).toMatchObject({ name, isLast: true })

      expect(['old', 'new']).toContain(userIn(database))
      expect(await restore()).toMatchObject({ exitCode: 0 })
      expect(dump(database)).toEqual(dump(backup))
    },
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

/** The user of the database that is left, or why the database cannot be read. */
function stateOf(loss: Loss): string {
  using files = putInFolder(loss)
  try {
    return userIn(files.database)
  } catch (error) {
    return String(error)
  }
}

/** The user of a database if it is whole, else its problems. */
function userIn(database: string): string {
  using db = new Database(database, { readwrite: true, create: false })
  const problems = db.prepare('pragma integrity_check').values().flat().join()
  const [[user, plants] = []] = db.prepare('select max(name), (select count(*) from plants) from users').values()
  if (problems !== 'ok') return problems
  return plants === (user === 'new' ? PLANTS : 0) ? String(user) : `${user} with ${plants} plants`
}
