import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { COMMAND, runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { runProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { createTokenIn } from '../support/tokens.ts'
import { contentOf } from './power-loss/disk.ts'
import { describeLoss, type Loss, losePower, putInFolder } from './power-loss/losses.ts'
import { DATABASE, recordCommand, recordFolder, recordProgram } from './power-loss/recording.ts'
import { rounds, testRounds } from './rounds.ts'
import { traceCalls } from './system-calls.ts'

/** Subsets of unsynced changes of a recording, divided among its events. */
const SUBSETS = rounds(400, 8000)
/** How many losses of a recording are followed by the same command again. */
const REPEATS = rounds(2, 12)
const PLANTS = 300
const TOKENS = 1000
/** An event that stands between what was before a command and the command. */
const BEGUN = 'begun'
/** Writes to a WAL and dies before a checkpoint. */
const DYING = `const { Database } = await import('bun:sqlite')
  const db = new Database(process.argv[1])
  db.run('pragma wal_autocheckpoint = 0')
  db.run("update users set name = 'old.by.its.WAL'")
  process.kill(process.pid, 'SIGKILL')`
const OLD = 'old.by.its.WAL: tokens 1, plants 0'

/** A command on a database, which may make another file. `after` is what the files are once it has ended. */
interface Command {
  readonly name: string
  readonly args: (database: string, elsewhere: string) => readonly string[]
  readonly makes?: string
  readonly after: string
}

const BACKUP: Command = {
  name: 'backup',
  args: (database) => ['backup', `${database}.backup`, '--database', database],
  makes: '.backup',
  after: `${OLD}; ${OLD}`,
}
const COPY: Command = {
  name: 'copy',
  args: (database) => ['copy', '--from', database, '--to', `${database}.copy`],
  makes: '.copy',
  after: `${OLD}; ${OLD}`,
}
const RESTORE: Command = {
  name: 'restore --force',
  args: (database, elsewhere) => ['restore', join(elsewhere, 'backup.db'), '--force', '--database', database],
  after: `new: tokens 1, plants ${PLANTS}`,
}
const TOKEN_IMPORT: Command = {
  name: 'token import',
  args: (database, elsewhere) => ['token', 'import', join(elsewhere, 'tokens'), '--database', database],
  after: `user-9: tokens ${TOKENS + 1}, plants 0`,
}

describe('wherever it is killed or the power is lost, and once it is repeated', () => {
  for (const command of [BACKUP, COPY, RESTORE, TOKEN_IMPORT]) {
    testRounds(`${command.name} has done all or nothing`, { short: 1, long: 5, needs: [STRACE] }, async (random) => {
      using elsewhere = makeFolder()
      await makeInputs(elsewhere.path)
      const { events } = await recordFolder(async (path, trace) => {
        const database = join(path, DATABASE)
        await recordCommand(trace, 'token', 'create', '--user', 'old', '--database', database)
        await recordProgram(trace, 'sh', '-c', '"$0" -e "$1" "$2" || true', process.execPath, DYING, database)
        await recordProgram(trace, 'touch', join(path, BEGUN))
        await recordCommand(trace, ...command.args(database, elsewhere.path))
      })
      const first = events.findIndex((event) => event.kind === 'relinked' && event.entries[0]?.[0] === BEGUN)
      const cuts = events.map((_, index) => index + 1).slice(first)
      const before = command.makes === undefined ? OLD : `${OLD}; nothing`

      const seen = new Map<string, string>()
      const repeated: Loss[] = []
      for (const loss of losePower(events, cuts, Math.ceil(SUBSETS / cuts.length), random)) {
        const content = contentOf(loss.files)
        const state = seen.get(content) ?? stateOf(loss, command)
        if (![before, command.after].includes(state)) throw new Error(`${state}: ${describeLoss(loss, events)}`)
        const isRepeatable = !seen.has(content) && (command.makes === undefined || state === before)
        const place = random(Math.max(REPEATS, seen.size))
        if (isRepeatable && place < REPEATS) repeated[Math.min(place, repeated.length)] = loss
        seen.set(content, state)
        if (loss.cut === events.length) expect(state).toBe(command.after)
      }
      expect(new Set(seen.values())).toEqual(new Set([before, command.after]))

      for (const loss of repeated) {
        using files = putInFolder(loss)
        expect(await runPlantstore(command.args(files.database, elsewhere.path))).toMatchObject({ exitCode: 0 })
        expect(stateIn(files.database, command)).toBe(command.after)
        expect(readdirSync(dirname(files.database)).filter((name) => name.endsWith('-wal'))).toEqual([])
      }
      console.log(`${cuts.length} cuts, ${seen.size} different contents, ${repeated.length} repeated`)
    })
  }
})

/** Makes the backup and the tokens that commands read. */
async function makeInputs(folder: string): Promise<void> {
  const original = join(folder, 'original.db')
  await createTokenIn(original, 'new')
  addPlants(original, PLANTS)
  await runPlantstore(['backup', join(folder, 'backup.db'), '--database', original])
  const lines = Array.from({ length: TOKENS }, (_, index) => `${makeTokenLine(`user-${index % 10}`).line}\n`)
  writeFileSync(join(folder, 'tokens'), lines.join(''))
}

function stateOf(loss: Loss, command: Command): string {
  using files = putInFolder(loss)
  return stateIn(files.database, command)
}

/** What the database and the file that the command makes hold, or why they cannot be read. */
const stateIn = (database: string, { makes }: Command): string =>
  [database, ...(makes === undefined ? [] : [database + makes])].map(describeStore).join('; ')

function describeStore(path: string): string {
  if (!existsSync(path)) return 'nothing'
  try {
    using db = new Database(path, { readwrite: true, create: false })
    // This recovery need not wait for the disk.
    db.run('pragma synchronous = off')
    const problems = db.prepare('pragma integrity_check').values().flat().join()
    if (problems !== 'ok') return problems
    const counts = ['tokens', 'plants'].map(
      (table) => `${table} ${db.prepare(`select count(*) from ${table}`).values()}`,
    )
    return `${db.prepare('select max(name) from users').values()}: ${counts.join(', ')}`
  } catch (error) {
    return String(error)
  }
}

const NEW_DATABASE = resolve(import.meta.dir, '../../src/engine/sqlite/files/new-database.ts')

describe.skipIf(lacks(STRACE))('on a file system without links', () => {
  /** Runs a program while links fail, which it must try. */
  const runWithoutLinks = async (...command: readonly string[]) => {
    using trace = traceCalls({ inject: 'link:error=EPERM' })
    const ended = await runProgram([...trace.under, ...command])
    expect((await trace.seen()).calls.filter(({ isInjected }) => isInjected)).toHaveLength(1)
    return ended
  }

  test('a backup is made', async () => {
    using folder = makeFolder()
    const database = join(folder.path, DATABASE)
    await createTokenIn(database, 'me')

    expect(await runWithoutLinks(...COMMAND, ...BACKUP.args(database, ''))).toMatchObject({ exitCode: 0 })
    expect(stateIn(database, BACKUP)).toBe('me: tokens 1, plants 0; me: tokens 1, plants 0')
    expect(readdirSync(folder.path).sort()).toEqual([DATABASE, `${DATABASE}.backup`])
  })

  test('a file that has just appeared is never replaced', async () => {
    using folder = makeFolder()
    const [made, taken] = [join(folder.path, 'made'), join(folder.path, 'taken')]
    for (const path of [made, taken]) writeFileSync(path, path)
    const program = `const { renameToNew } = await import(process.argv[1])
      console.log(renameToNew(process.argv[2], process.argv[3]))`

    const { stdout } = await runWithoutLinks(process.execPath, '-e', program, NEW_DATABASE, made, taken)
    expect(stdout).toBe('false\n')
    expect([made, taken].map((path) => readFileSync(path, 'utf8'))).toEqual([made, taken])
  })
})
