import { Database } from 'bun:sqlite'

/** What a client knows of a write: an answer of success, one that says that nothing was done, or neither. */
export type Outcome = 'acknowledged' | 'refused' | 'cut off'

/** A write that was sent. */
export interface Entry {
  readonly kind: 'create' | 'delete'
  readonly id: number
  /** Stays so where no answer came. */
  outcome: Outcome
  /** Its place in the order in which the client has sent writes and seen answers. */
  readonly sentAt: number
  /** The same of its answer, where one came. */
  answeredAt: number | undefined
}

/** The client's own record of what it sent and what it was told: the judge of what a server has kept. */
export type History = ReturnType<typeof startHistory>

/** What a write is called in the log of the server, where a client sends it as its `X-Request-Id`. */
export const requestIdOf = ({ kind, id }: Pick<Entry, 'kind' | 'id'>) => `${kind}-${id}`

/** The plant that every create of a history stores: one that is kept in part, or mixed up, is found. */
export const plantOf = (id: number) => ({
  id,
  name: `Monstera deliciosa ${id} ${'x'.repeat(id % 50)}`,
  tag: `tag ${id}`,
})

/** One that takes more than half a page: with such plants a checkpoint is due after some twenty groups. */
export const largePlantOf = (id: number) => ({ ...plantOf(id), name: `${plantOf(id).name} ${'y'.repeat(2500)}` })

/**
 * Begins a history. The ids of its plants start at `firstId` and belong to no other history of the same database. Where
 * plants must be larger, `makePlant` makes them of their ids.
 */
export function startHistory(firstId = 1, makePlant = plantOf) {
  const entries: Entry[] = []
  const own: number[] = []
  const wrong: string[] = []
  let nextId = firstId
  let moment = 0

  const add = (kind: Entry['kind'], id: number): Entry => {
    const entry: Entry = { kind, id, outcome: 'cut off', sentAt: moment++, answeredAt: undefined }
    entries.push(entry)
    return entry
  }
  const count = (outcome: Outcome) => entries.filter((entry) => entry.outcome === outcome).length

  return {
    /** The plant that a create of this id stores. */
    plantOf: makePlant,
    /** All writes, in the order in which they were sent. */
    entries: (): readonly Entry[] => entries,
    /** The place, in the order of what was sent and answered, of what comes next. */
    now: () => moment,
    /** A create is about to be sent, with an id that was never used before. */
    create: (): Entry => add('create', nextId++),
    /** A delete of a plant that was acknowledged is about to be sent; `undefined` where there is none. */
    delete(pick: (bound: number) => number): Entry | undefined {
      if (own.length === 0) return undefined
      const index = pick(own.length)
      const id = own[index] ?? 0
      // Nobody else deletes it, so that one answer alone is right.
      own[index] = own.at(-1) ?? 0
      own.pop()
      return add('delete', id)
    },
    /** An answer came. */
    record(entry: Entry, status: number, body: string): void {
      entry.outcome = outcomeOf(entry.kind, status, body)
      entry.answeredAt = moment++
      if (entry.outcome === 'acknowledged' && entry.kind === 'create') own.push(entry.id)
      if (entry.outcome === 'refused' && entry.kind === 'delete') own.push(entry.id)
      if (status < 500 && entry.outcome === 'refused') wrong.push(`${entry.kind} ${entry.id}: ${status} ${body}`)
    },
    counts: () => ({
      acknowledged: count('acknowledged'),
      refused: count('refused'),
      cutOff: count('cut off'),
    }),
    /** The writes that were cut off, or refused a connection. */
    cutOff: (): readonly Entry[] => entries.filter(({ outcome }) => outcome === 'cut off'),
    /**
     * Opens the database from this process and throws if it is damaged, or if it does not hold what it must: all that
     * was acknowledged, nothing that was refused, and what was cut off whole or not at all. Plants with ids below
     * `firstId` are passed over.
     */
    check(database: string): void {
      this.checkRows(readPlants(database, firstId))
    },
    /** The same of plants that were read from a database of another kind. */
    checkRows(rows: ReadonlyMap<number, PlantRow>): void {
      const faults = [...wrong, ...faultsIn(rows, entries, makePlant)]
      if (faults.length === 0) return
      throw new Error(`${faults.length} faults: ${faults.slice(0, 5).join('; ')}`)
    },
  }
}

function outcomeOf(kind: Entry['kind'], status: number, body: string): Outcome {
  if (status === (kind === 'create' ? 200 : 204)) return 'acknowledged'
  return body.includes('took effect is unknown') ? 'cut off' : 'refused'
}

/** A plant as it is stored. */
export interface PlantRow {
  readonly id: number
  readonly name: string
  readonly tag: string | null
}

function readPlants(database: string, firstId: number): ReadonlyMap<number, PlantRow> {
  using db = new Database(database, { readwrite: true })
  db.run('pragma busy_timeout = 5000')
  return plantsIn(db, firstId)
}

/** The plants of a database from an id on, by their ids. Throws if it is damaged. */
export function plantsIn(db: Database, firstId: number): ReadonlyMap<number, PlantRow> {
  const integrity = db.prepare('pragma integrity_check').values()
  if (integrity.length !== 1 || integrity[0]?.[0] !== 'ok') throw new Error(`damaged: ${JSON.stringify(integrity)}`)
  const rows = db.prepare<PlantRow, [number]>('select id, name, tag from plants where id >= ?1').all(firstId)
  return new Map(rows.map((row) => [row.id, row]))
}

/** What a database that has these plants holds against what was sent and answered, one sentence for each. */
export function faultsIn(
  rows: ReadonlyMap<number, PlantRow>,
  entries: readonly Entry[],
  makePlant: typeof plantOf,
): string[] {
  const faults: string[] = []
  const possible = new Map<number, { create: Outcome; delete?: Outcome }>()
  for (const { kind, id, outcome } of entries) {
    const plant = possible.get(id)
    if (plant === undefined) possible.set(id, { create: outcome })
    // A delete that was refused may have been sent again.
    else if (kind === 'delete' && plant.delete !== 'cut off') plant.delete = outcome
  }
  for (const [id, plant] of possible) {
    const row = rows.get(id)
    const mustBe = plant.create === 'acknowledged' && (plant.delete === undefined || plant.delete === 'refused')
    const mustNotBe = plant.create === 'refused' || plant.delete === 'acknowledged'
    if (mustBe && row === undefined) faults.push(`plant ${id} was acknowledged and is lost`)
    if (mustNotBe && row !== undefined) faults.push(`plant ${id} must not be there: ${JSON.stringify(plant)}`)
  }
  for (const row of rows.values()) {
    if (!possible.has(row.id)) faults.push(`nobody created plant ${row.id}`)
    const { name, tag } = makePlant(row.id)
    if (row.name !== name || row.tag !== tag) faults.push(`plant ${row.id} is not what was sent`)
  }
  return faults
}
