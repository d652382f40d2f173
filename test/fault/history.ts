import { Database } from 'bun:sqlite'
import type { Random } from '../support/random.ts'
import { isBusy } from '../support/slack.ts'

/**
 * What a client knows of a write: it was answered with success, it was refused and changed nothing, or neither, because the
 * connection ended or the answer said so.
 */
type Outcome = 'acknowledged' | 'refused' | 'unknown'

/** The status of each write if it succeeds. A put makes a plant or replaces it. */
export const SUCCESS = { create: 200, make: 201, replace: 200, delete: 204 } as const

/** A write that was sent. */
export interface Write {
  readonly kind: keyof typeof SUCCESS
  readonly id: number
  /** The number of the content that a replacing put stores; else 0. */
  readonly version: number
  /** Stays `unknown` if no answer comes. */
  outcome: Outcome
  /** Its place in the order in which the client sent writes and received answers. */
  readonly sentAt: number
  /** The place of its answer in the same order. */
  answeredAt: number | undefined
}

/** An answer of the server. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

/** How `refusals()` reports the errors of a store that cannot write, that has failed, and that is busy. */
export const FULL_REFUSAL = '503 50301, Retry-After: 1'
export const FAILED_REFUSAL = '503 50302, Retry-After: 1'
export const BUSY_REFUSAL = '503 50303, Retry-After: 1'

/** The client's record of its writes and their answers. It decides what a database must hold. */
export type History = ReturnType<typeof startHistory>

/** The `X-Request-Id` of a write, by which the server's log names the write. */
export const requestIdOf = ({ kind, id, version }: Pick<Write, 'kind' | 'id' | 'version'>) =>
  kind === 'replace' ? `${kind}-${id}-${version}` : `${kind}-${id}`

/** The plant that a create of this id stores. Its length and text depend on the id, so that a mixed-up plant is found. */
export const plantOf = (id: number) => ({
  id,
  name: `Monstera deliciosa ${id} ${'x'.repeat(id % 50)}`,
  tag: `tag ${id}`,
})

/** A plant of more than half a page. With such plants a checkpoint is due after some twenty group commits. */
export const largePlantOf = (id: number) => ({ ...plantOf(id), name: `${plantOf(id).name} ${'y'.repeat(2500)}` })

/** The plant that a write stores, of the plant that a create of its id stores. Replacing changes the name and removes the tag. */
export const contentOf = ({ version }: Pick<Write, 'version'>, { id, name, tag }: ReturnType<typeof plantOf>) =>
  version === 0 ? { id, name, tag } : { id, name: `${name} ${version}` }

/** Starts a history whose ids begin at `firstId`. No other history of the same database may use these ids. */
export function startHistory(firstId = 1, makePlant = plantOf) {
  const writes: Write[] = []
  /** The plants that are stored for sure, and that no write is under way for. So the writes of a plant follow each other. */
  const stored: number[] = []
  const refusals = new Set<string>()
  /** Errors that no correct server answers to a write of a history. */
  const unexpected: string[] = []
  let errorCount = 0
  const counts: Record<Outcome, number> = { acknowledged: 0, refused: 0, unknown: 0 }
  let nextId = firstId
  let versions = 0
  let moment = 0

  const add = (kind: Write['kind'], id: number, version = 0): Write => {
    const write: Write = { kind, id, version, outcome: 'unknown', sentAt: moment++, answeredAt: undefined }
    writes.push(write)
    counts.unknown++
    return write
  }

  return {
    /** The plant that a create of this id stores. */
    plantOf: makePlant,
    /** All writes, in the order in which they were sent. */
    writes: (): readonly Write[] => writes,
    /** The place of the next event in the order of sent writes and received answers. */
    now: () => moment,
    /** Adds a create with a new id, which the caller sends. */
    create: (): Write => add('create', nextId++),
    /** Adds a put with a new id. */
    make: (): Write => add('make', nextId++),
    /** Adds a put of a plant that is stored; `undefined` if there is none. */
    replace(random: Random): Write | undefined {
      const id = takeRandom(stored, random)
      return id === undefined ? undefined : add('replace', id, ++versions)
    },
    /** Adds a delete of a plant that is stored; `undefined` if there is none. No plant is deleted twice. */
    delete(random: Random): Write | undefined {
      const id = takeRandom(stored, random)
      return id === undefined ? undefined : add('delete', id)
    },
    /** Records the answer to a write. */
    record(write: Write, answer: Answer): void {
      write.outcome = outcomeOf(write.kind, answer)
      write.answeredAt = moment++
      counts.unknown--
      counts[write.outcome]++
      if (isStoredAfter(write)) stored.push(write.id)
      if (answer.status < 500 && write.outcome === 'refused') unexpected.push(`${requestIdOf(write)}: ${answer.status}`)
      if (answer.status < 300) return
      errorCount++
      refusals.add(describeRefusal(answer))
    },
    counts: (): Readonly<Record<Outcome, number>> => ({ ...counts }),
    /** How many writes were answered with an error, also those of unknown outcome. */
    errors: () => errorCount,
    /** The kinds of errors that were answered, like `503 50301, Retry-After: 1`. */
    refusals: (): string[] => [...refusals],
    /** The same, on a busy machine without `BUSY_REFUSAL`: there a write may wait for too long. */
    failures: (): string[] => [...refusals].filter((refusal) => refusal !== BUSY_REFUSAL || !isBusy()),
    /**
     * Throws if the database is damaged or does not hold what it must: all that was acknowledged, nothing that was refused,
     * and each write of unknown outcome whole or not at all. Plants with ids below `firstId` are not looked at.
     */
    check(database: string): void {
      using db = new Database(database, { readwrite: true })
      db.run('pragma busy_timeout = 5000')
      this.checkRows(readPlants(db, firstId))
    },
    /** The same for plants that the caller has read. */
    checkRows(rows: PlantRows): void {
      const faults = [...unexpected, ...faultsIn(rows, writes, makePlant)]
      if (faults.length > 0) throw new Error(`${faults.length} faults: ${faults.slice(0, 5).join('; ')}`)
    },
  }
}

/** Removes a random item from a list whose order does not matter. */
export function takeRandom<T>(items: T[], random: Random): T | undefined {
  const index = random(items.length)
  const item = items[index]
  const last = items.pop()
  if (last !== undefined && index < items.length) items[index] = last
  return item
}

const isStoredAfter = ({ kind, outcome }: Write): boolean =>
  (kind !== 'delete' && outcome === 'acknowledged') ||
  ((kind === 'replace' || kind === 'delete') && outcome === 'refused')

function outcomeOf(kind: Write['kind'], { status, body }: Answer): Outcome {
  if (status === SUCCESS[kind]) return 'acknowledged'
  return body.includes('took effect is unknown') ? 'unknown' : 'refused'
}

const describeRefusal = ({ status, headers, body }: Answer): string =>
  `${status} ${JSON.parse(body).error}, Retry-After: ${headers.get('retry-after')}`

/** A plant as it is stored. */
export interface PlantRow {
  readonly id: number
  readonly name: string
  readonly tag: string | null
}

/** Plants by their ids. */
export type PlantRows = ReadonlyMap<number, PlantRow>

/** The plants of a database from an id on. Throws if the database is damaged. */
export function readPlants(db: Database, firstId: number): PlantRows {
  const integrity = db.prepare('pragma integrity_check').values()
  if (integrity.length !== 1 || integrity[0]?.[0] !== 'ok') throw new Error(`damaged: ${JSON.stringify(integrity)}`)
  const rows = db.prepare<PlantRow, [number]>('select id, name, tag from plants where id >= ?1').all(firstId)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Compares the plants of a database with what was sent and answered. Returns a sentence for each contradiction. */
export function faultsIn(rows: PlantRows, writes: readonly Write[], makePlant: typeof plantOf): string[] {
  const faults: string[] = []
  for (const [id, sent] of Map.groupBy(writes, (write) => write.id)) {
    const plant = makePlant(id)
    const possible = statesAfter(sent)
    const row = rows.get(id)
    const isPossible =
      row === undefined
        ? possible.has(undefined)
        : [...possible].some((write) => write !== undefined && isStoredBy(write, row, plant))
    if (!isPossible)
      faults.push(`${JSON.stringify(row)} cannot be what is stored after ${sent.map(describe).join(', ')}`)
  }
  const ids = new Set(writes.map(({ id }) => id))
  for (const id of rows.keys()) if (!ids.has(id)) faults.push(`nobody created plant ${id}`)
  return faults
}

/** The writes of a plant whose content may be stored after all of them, and `undefined` if the plant may be absent. */
function statesAfter(writes: readonly Write[]): ReadonlySet<Write | undefined> {
  let states = new Set<Write | undefined>([undefined])
  for (const write of writes) {
    const state = write.kind === 'delete' ? undefined : write
    if (write.outcome === 'acknowledged') states = new Set([state])
    if (write.outcome === 'unknown') states.add(state)
  }
  return states
}

/** Whether a stored plant is what a create or put has sent, to the last field. */
export function isStoredBy(write: Write, { name, tag }: PlantRow, made: ReturnType<typeof plantOf>): boolean {
  const content: { name: string; tag?: string } = contentOf(write, made)
  return write.kind !== 'delete' && name === content.name && tag === (content.tag ?? null)
}

const describe = (write: Write): string => `${requestIdOf(write)} ${write.outcome}`
