import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import type { PlantRows } from './history.ts'
import { chooseCuts, countsOf } from './power-loss/cuts.ts'
import { EVERYTHING, type Files, NOTHING } from './power-loss/disk.ts'
import { gapsIn, type Known, knownAfter, lossesIn, readRebuilt } from './power-loss/judge.ts'
import { contentOf, describeLoss, formOf, type Loss, losePower, putInFolder, startOn } from './power-loss/lose.ts'
import {
  DATABASE,
  type RecordingWithHistory,
  recordCommand,
  recordFolder,
  recordLife,
  recordProgram,
} from './power-loss/record.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'

/**
 * A seed fixes what is sent, the cut points and the subsets, but not in which order threads run: no recording is
 * twice.
 */
const RECORDINGS = rounds(1, 5)
const CUTS = rounds(20, 200)
const SUBSETS = 3
/** Of so many losses the executable is the first to see one. */
const LOSSES_PER_START = rounds(25, 10)
/** One for each group of some hundred writes is more than that, one for each checkpoint and new WAL is less. */
const MANY_SYNCS = 50
/** Subsets of what is unsynced after each event while a database is made; most of them are alike. */
const SUBSETS_OF_MAKING = 400
/** Changes, half of them synced, of the folder that it gets. */
const SCRIPT = `: >"$1/a"; truncate -s 700 "$1/a"; sync "$1/a"; mv "$1/a" "$1/b"; ln "$1/b" "$1/c"; : >"$1/d"; sync "$1"
  rm "$1/b"; truncate -s 100 "$1/c"`
/** More than that say nothing more. */
const MAX_FAULTS = 10

describe.skipIf(lacks(STRACE))('when the power is lost', () => {
  test(
    'with --durability full, all that was acknowledged is there, and nothing that nobody sent',
    () =>
      runRounds(RECORDINGS, async (random) => {
        const recording = await recordLife(['--durability', 'full'], random)

        const { faults, cutsWithUnsynced } = await judgeLosses(recording, random, (_, rows, known) =>
          lossesIn(rows, known, recording),
        )

        expect(faults).toEqual([])
        // Otherwise nothing was there to be lost.
        expect(cutsWithUnsynced).toBeGreaterThan(CUTS / 4)
        expect(expectAll(recording).walSyncs).toBeGreaterThan(MANY_SYNCS)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'with --durability normal, the latest writes alone are missing, all from some point on',
    () =>
      runRounds(RECORDINGS, async (random) => {
        const recording = await recordLife(['--durability', 'normal'], random)
        let lossCount = 0
        let latest: PlantRows = new Map()

        const { faults, cutsWithUnsynced } = await judgeLosses(recording, random, ({ survival }, rows, known) => {
          const lost = lossesIn(rows, known, recording)
          lossCount += lost.length
          if (survival !== EVERYTHING) return gapsIn(rows, known, recording)
          latest = rows
          // The end of the process alone takes nothing.
          return lost
        })

        expect(faults).toEqual([])
        expect(cutsWithUnsynced).toBeGreaterThan(CUTS / 4)
        expect(expectAll(recording).walSyncs).toBeLessThan(MANY_SYNCS)
        // The judge of the promise above, and that of this one, see a fault where there is one.
        expect(lossCount).toBeGreaterThan(0)
        const [first = 0] = latest.keys()
        const withoutFirst = new Map([...latest].filter(([id]) => id !== first))
        const known = knownAfter(recording.events.length, recording)
        expect(gapsIn(latest, known, recording)).toEqual([])
        expect(gapsIn(withoutFirst, known, recording)).toContain(`create-${first} is missing, and a later write is not`)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'while a database is made, the next start makes it or goes on with it, with no manual step',
    () =>
      runRounds(1, async (random) => {
        const { events } = await recordFolder((path, trace) =>
          recordCommand(trace, join(path, DATABASE), 'token', 'create', '--user', 'me'),
        )
        const cuts = events.map((_, index) => index + 1)
        const likeness = IS_LONG ? contentOf : formOf
        const seen = new Map<string, string>()
        const faults: string[] = []

        for (const loss of losePower(events, cuts, SUBSETS_OF_MAKING, random)) {
          if (seen.has(likeness(loss.files))) continue
          seen.set(likeness(loss.files), formOf(loss.files))
          using files = putInFolder(loss)
          await startOn(files.database).catch((error) => faults.push(`${describeLoss(loss, events)}: ${error}`))
        }

        expect(faults).toEqual([])
        // Both were refused once: a torn first page, and a journal that is still there beside a WAL.
        expect([...seen.values()]).toContain('plantstore.db-journal: begun, plantstore.db: blank')
        expect([...seen.values()]).toContain(
          'plantstore.db-journal: begun, plantstore.db-wal: begun, plantstore.db: begun',
        )
        console.log(`${seen.size} starts`)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test('a record tells creates, truncates, renames, links and unlinks, and what of them was synced', async () => {
    const { events } = await recordFolder(async (path, trace) => {
      await recordProgram(trace, 'sh', '-c', SCRIPT, 'sh', path)
    })

    const [nothing, everything] = losePower(events, [events.length], 0, () => 0)

    expect(sizesOf(nothing?.files)).toEqual({ b: 700, c: 700, d: 0 })
    expect(sizesOf(everything?.files)).toEqual({ c: 100, d: 0 })
  })
})

/** Whether a recording has had what it must for all that was said of it to mean something. */
function expectAll(recording: RecordingWithHistory): ReturnType<typeof countsOf> {
  const counts = countsOf(recording)
  console.log(`${recording.events.length} events`, counts)
  const { acknowledged, ...others } = recording.history.counts()
  expect(others).toEqual({ refused: 0, unknown: 0 })
  expect(counts.answers).toBe(acknowledged)
  expect(counts.walRestarts).toBeGreaterThan(0)
  expect(counts.truncatesOfWal).toBeGreaterThan(0)
  // One when the file is made, one for each of four processes that end, and at least one because the WAL has grown.
  expect(counts.databaseSyncs).toBeGreaterThan(5)
  return counts
}

type Judge = (loss: Loss, rows: PlantRows, known: Known) => readonly string[]

/** Rebuilds what the disk may hold at the cut points, opens it and judges it. */
async function judgeLosses(recording: RecordingWithHistory, random: Random, judge: Judge) {
  const { events } = recording
  const faults: string[] = []
  const unsynced = new Set<number>()
  let nothing: Files | undefined
  for (const loss of losePower(events, chooseCuts(recording, CUTS, random), SUBSETS, random)) {
    if (loss.survival === NOTHING) nothing = loss.files
    const differs = nothing !== undefined && contentOf(loss.files) !== contentOf(nothing)
    if (loss.survival === EVERYTHING && differs) unsynced.add(loss.cut)
    try {
      using files = putInFolder(loss)
      if (random(LOSSES_PER_START) === 0) await startOn(files.database)
      const known = knownAfter(loss.cut, recording)
      faults.push(
        ...judge(loss, readRebuilt(files.database), known).map((fault) => `${describeLoss(loss, events)}: ${fault}`),
      )
    } catch (error) {
      faults.push(`${describeLoss(loss, events)}: ${error}`)
    }
  }
  return { faults: faults.slice(0, MAX_FAULTS), cutsWithUnsynced: unsynced.size }
}

const sizesOf = (files: Files = new Map()) => Object.fromEntries([...files].map(([name, { length }]) => [name, length]))
