import { describe, expect } from 'bun:test'
import { join } from 'node:path'
import { IS_LONG } from '../support/long.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { faultsIn, type PlantRows, requestIdOf, type Write } from './history.ts'
import { findGaps, type KnownWrites, knownAfter, readRebuilt } from './power-loss/compare.ts'
import { contentOf, EVERYTHING, type Files, NOTHING } from './power-loss/disk.ts'
import type { Event } from './power-loss/events.ts'
import { describeLoss, formOf, type Loss, losePower, putInFolder, startOn } from './power-loss/losses.ts'
import {
  DATABASE,
  type LoadRecording,
  type Recording,
  recordCommand,
  recordFolder,
  recordLoad,
} from './power-loss/recording.ts'
import { rounds, testRounds } from './rounds.ts'

/** A seed fixes what is sent, the cut points and the subsets, but not the order in which threads run. */
const RECORDINGS = { short: 1, long: 5 }
const CUTS = rounds(12, 200)
const SUBSETS = 3
/** The executable opens one of this number of losses first. */
const LOSSES_PER_START = rounds(25, 10)
/** A sync for each group commit of some hundred writes is more than that, a sync for each checkpoint and new WAL is less. */
const MANY_SYNCS = 50
/** Subsets of unsynced changes after each event while a database is made. Most of them are alike. */
const SUBSETS_OF_MAKING = 400
const WAL = `${DATABASE}-wal`
/** What makes up every group commit. All other events are rare. */
const COMMON = ['written', 'answered', `${WAL} synced`]
/** Length of a WAL's header (https://sqlite.org/walformat.html#the_wal_file_format). */
const WAL_HEADER_BYTES = 32
/** More faults say nothing more. */
const MAX_FAULTS = 10

describe.skipIf(lacks(STRACE))('a loss of power', () => {
  testRounds('with --durability full loses nothing acknowledged and adds nothing', RECORDINGS, async (random) => {
    const recording = await recordLoad(['--durability', 'full'], random)

    const { faults, cutsWithUnsynced } = await checkLosses(recording, random, (_, rows, known) =>
      faultsIn(rows, known, recording.history.plantOf),
    )

    expect(faults).toEqual([])
    // Otherwise there was nothing to lose.
    expect(cutsWithUnsynced).toBeGreaterThan(CUTS / 4)
    expect(expectWholeRecording(recording)).toBeGreaterThan(MANY_SYNCS)
  })

  testRounds(
    'with --durability normal loses only the latest writes, all from some point on',
    RECORDINGS,
    async (random) => {
      const recording = await recordLoad(['--durability', 'normal'], random)
      let lossCount = 0
      let latest: PlantRows = new Map()

      const { faults, cutsWithUnsynced } = await checkLosses(recording, random, ({ survival }, rows, known) => {
        const losses = faultsIn(rows, known, recording.history.plantOf)
        lossCount += losses.length
        if (survival !== EVERYTHING) return findGaps(rows, known, recording)
        latest = rows
        // The end of the process alone loses nothing.
        return losses
      })

      expect(faults).toEqual([])
      expect(cutsWithUnsynced).toBeGreaterThan(CUTS / 4)
      expect(expectWholeRecording(recording)).toBeLessThan(MANY_SYNCS)
      // Both comparisons find a fault if there is one.
      expect(lossCount).toBeGreaterThan(0)
      const [first = 0] = latest.keys()
      const withoutFirst = new Map([...latest].filter(([id]) => id !== first))
      const known = knownAfter(recording.events.length, recording)
      expect(findGaps(latest, known, recording)).toEqual([])
      const lost = known.find(({ id }) => id === first) as Write
      expect(findGaps(withoutFirst, known, recording)).toContain(
        `${requestIdOf(lost)} is missing, and a later write is not`,
      )
    },
  )

  testRounds(
    'while a database is made needs no manual step: the next start makes the database or continues',
    { short: 1, long: 1 },
    async (random) => {
      const { events } = await recordFolder((path, trace) =>
        recordCommand(trace, 'token', 'create', '--user', 'me', '--database', join(path, DATABASE)),
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
      const forms = [...seen.values()].map((form) => form.replace(/\.partial-[\da-f-]+/, '.partial'))
      for (const form of ['plantstore.db.partial: blank', 'plantstore.db.partial: begun, plantstore.db: begun'])
        expect(forms).toContain(form)
      console.log(`${seen.size} starts`)
    },
  )
})

/** Expects in a recording what gives its losses a meaning: whole answers, new WALs, and checkpoints. Returns its syncs of the WAL. */
function expectWholeRecording(recording: LoadRecording): number {
  const { events, history } = recording
  const counts = new Map<string, number>()
  for (const meaning of events.map((event) => meaningOf(event, recording)))
    counts.set(meaning, (counts.get(meaning) ?? 0) + 1)
  console.log(`${events.length} events: ${[...counts].map(([meaning, count]) => `${meaning} ${count}`).join(', ')}`)
  expect(history.counts()).toEqual({ acknowledged: counts.get('answered') ?? 0, refused: 0, unknown: 0 })
  // A WAL of one server begins anew.
  expect(counts.get('WAL begun')).toBeGreaterThan(counts.get('WAL made') ?? 0)
  expect(counts.get(`${WAL} truncated`)).toBeGreaterThan(0)
  // One when the file is made, one for each of four processes that end, and at least one because the WAL is long.
  expect(counts.get(`${DATABASE} synced`)).toBeGreaterThan(5)
  return counts.get(`${WAL} synced`) ?? 0
}

type FindFaults = (loss: Loss, rows: PlantRows, known: KnownWrites) => readonly string[]

/** Rebuilds what the disk may hold at the cut points, and looks for faults in each of these databases. */
async function checkLosses(recording: LoadRecording, random: Random, findFaults: FindFaults) {
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
      const found = findFaults(loss, readRebuilt(files.database), knownAfter(loss.cut, recording))
      faults.push(...found.map((fault) => `${describeLoss(loss, events)}: ${fault}`))
    } catch (error) {
      faults.push(`${describeLoss(loss, events)}: ${error}`)
    }
  }
  return { faults: faults.slice(0, MAX_FAULTS), cutsWithUnsynced: unsynced.size }
}

/**
 * Chooses after how many events the power is lost, in ascending order: a third each while the database is made, next to a rare
 * event, and anywhere.
 */
function chooseCuts(recording: Recording, count: number, random: Random): readonly number[] {
  const { events } = recording
  const upTo = (end: number) => Array.from({ length: end }, (_, index) => index + 1)
  const making = upTo(events.findIndex(({ kind }) => kind === 'answered'))
  const rare = events.flatMap((event, index) =>
    COMMON.includes(meaningOf(event, recording)) ? [] : [index, index + 1],
  )
  const pools = [making, rare, upTo(events.length)]
  const chosen = new Set<number>()
  for (let draw = 0; chosen.size < Math.min(count, events.length); draw++) {
    const pool = pools[draw % pools.length] ?? []
    chosen.add(pool[random(pool.length)] ?? events.length)
  }
  return [...chosen].sort((a, b) => a - b)
}

/** What an event means for a database. */
function meaningOf(event: Event, { nameOf }: Recording): string {
  if (event.kind === 'synced') return `${event.of === 'folder' ? 'folder' : nameOf(event.of)} synced`
  if (event.kind === 'truncated') return `${nameOf(event.file)} truncated`
  if (event.kind === 'relinked')
    return event.entries.some(([name, file]) => name === WAL && file !== undefined) ? 'WAL made' : 'relinked'
  const isHeader = event.kind === 'written' && event.offset === 0 && event.bytes.length === WAL_HEADER_BYTES
  return isHeader && nameOf(event.file) === WAL ? 'WAL begun' : event.kind
}
