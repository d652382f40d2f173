import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import type { Random } from '../../support/random.ts'
import { EVERYTHING, emptyDisk, type Files, NOTHING, type Survival, something } from './disk.ts'
import type { Event } from './events.ts'
import { DATABASE } from './recording.ts'

/** The files that a disk may hold after a loss of power. */
export interface Loss {
  /** How many events were over. */
  readonly cut: number
  readonly survival: Survival
  readonly files: Files
}

/**
 * Loses the power at each cut point, in ascending order, in several ways: the disk has nothing that was not synced, everything,
 * or a random subset.
 */
export function* losePower(
  events: readonly Event[],
  cuts: readonly number[],
  subsets: number,
  random: Random,
): Generator<Loss> {
  const disk = emptyDisk()
  let position = 0
  for (const cut of cuts) {
    for (const event of events.slice(position, cut)) disk.take(event)
    position = cut
    const some = Array.from({ length: subsets }, () => something(random))
    for (const survival of [NOTHING, EVERYTHING, ...some]) yield { cut, survival, files: disk.lose(survival) }
  }
}

/** Size of the WAL-index of a small WAL. */
const SHM_BYTES = 32 * 1024

/** Puts the files of a loss into a folder. A random subset also gets noise as its WAL-index. Disposing removes the folder. */
export function putInFolder({ files, survival }: Loss) {
  const folder = makeFolder()
  const isRandom = survival !== NOTHING && survival !== EVERYTHING
  if (isRandom) writeFileSync(join(folder.path, `${DATABASE}-shm`), new Uint8Array(SHM_BYTES).fill(0xa5))
  for (const [name, bytes] of files) writeFileSync(join(folder.path, name), bytes)
  return { database: join(folder.path, DATABASE), [Symbol.dispose]: folder[Symbol.dispose] }
}

/** Lets the executable open a database as every start does, write to it, and check it. Throws if a command fails. */
export async function startOn(database: string): Promise<void> {
  for (const args of [['token', 'create', '--user', 'survivor'], ['check']]) {
    const { exitCode, stderr } = await runPlantstore([...args, '--database', database])
    if (exitCode !== 0) throw new Error(`${args.join(' ')} exits with ${exitCode}: ${stderr}`)
  }
}

/** Describes a loss for the search for a fault. */
export function describeLoss({ cut, survival, files }: Loss, events: readonly Event[]): string {
  const sizes = [...files].map(([name, { length }]) => `${name} of ${length} bytes`)
  return `${survival.name} kept after ${cut} of ${events.length} events, ${sizes.join(', ')}`
}

/** Enough bytes to see whether a file has content. */
const BEGINNING_BYTES = 16

/** The form of each file: empty, with zeros first, or with its beginning. */
export const formOf = (files: Files): string =>
  [...files]
    .map(([name, bytes]) => `${name}: ${formOfBeginning(bytes.subarray(0, BEGINNING_BYTES))}`)
    .sort()
    .join(', ')

function formOfBeginning(bytes: Uint8Array): 'empty' | 'blank' | 'begun' {
  if (bytes.length === 0) return 'empty'
  return bytes.every((byte) => byte === 0) ? 'blank' : 'begun'
}
