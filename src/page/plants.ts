// Tested in test/http/page/page-answers.test.ts.
import { entityTagOf } from '../domain/etag.ts'
import { CODES } from './answer.ts'
import { Refusal, refusalIn, send } from './client.ts'
import { because, describePlant, describeRefusal, inDoubt } from './messages.ts'
import { FIELD_NAMES, isIn, type Plant, type Rows } from './rows.ts'
import { hashOf } from './storage.ts'

/** A plant is not as the page has shown it, so it was not stored. `now` is `undefined` if it is gone. */
export class Conflict extends Refusal {
  constructor(
    shown: Plant | undefined,
    readonly now: Plant | undefined,
  ) {
    const taken = now && !shown && describeRefusal(CODES.exists, describePlant(now))
    const changed = now && `This plant has changed since you opened it: now it is ${describePlant(now)}.`
    super(CODES.changed, taken || `${changed || 'This plant is deleted.'} Your change is not stored.`)
  }
}

/** So far another server on the same file may be behind what the server has said of plants. */
const BEHIND_MAX_MS = 100
const said = new Map<string, Plant | undefined>()

/** Notes what the server says of a plant. The answer to a write has no id. */
function say(id: string, answered: Plant | undefined): Plant | undefined {
  const plant = answered && { ...answered, id }
  said.set(id, plant)
  setTimeout(() => said.get(id) === plant && said.delete(id), BEHIND_MAX_MS)
  return plant
}

/** Reads rows, and once more if they deny what the server had said just before that, or has said since. */
async function readRows<R extends Rows>(read: () => Promise<R>): Promise<R> {
  const before = [...said]
  const rows = await read()
  const found = new Map(rows.plants.map((plant) => [plant.id, plant]))
  if ([...before, ...said].every(([id, plant]) => !isIn(id, rows) || isSame(found.get(id), plant))) return rows
  await new Promise((resolve) => setTimeout(resolve, BEHIND_MAX_MS))
  return read()
}

/** So many plants a request if all are read. */
export const ALL_LIMIT = 1000

/** A page of the list. */
export const listPlants = (limit: number, after: string) =>
  readRows(async () => {
    const { plants, headers } = await send('GET', `plants?limit=${limit}${after && `&after=${after}`}&include=id`)
    const [, end = ''] = /[?&]after=(-?\d+)/.exec(headers.get('link') ?? '') ?? []
    return { plants, after, end }
  })

/** The stored plant with its `ETag`. `undefined` if there is none. */
export async function getPlant(id: string) {
  const { plants, etag } = await readRows(async () => {
    const { plants, headers } = await send('GET', `plants/${id}?include=id`, { expected: [CODES.notFound] })
    // A proxy that compresses makes a weak one of it.
    const etag = (headers.get('etag') ?? '').replace(/^W\//, '')
    return { plants, after: `${BigInt(id) - 1n}`, end: id, etag }
  })
  const [plant] = plants
  return plant && { plant, etag }
}

/** The stored plant after a request of which the page does not know whether it was done. Nobody knows if that fails, too. */
async function look(method: string, id: string) {
  try {
    const found = await getPlant(id)
    say(id, found?.plant)
    return found
  } catch (error) {
    throw new Refusal(CODES.unknown, because(inDoubt(method), refusalIn(error).message))
  }
}

/**
 * Stores the `wanted` plant, or deletes it without one, but only while it is stored as it is `shown`: `undefined` if there is
 * none. Returns the plant that is stored then, and whether a request has done it. One that was done and then repeated is refused,
 * so the page reads the plant. If nobody has changed it, the page sends once more with the `ETag` that the server gives it.
 */
export async function write(id: string, shown: Plant | undefined, wanted: Plant | undefined) {
  const method = wanted ? 'PUT' : 'DELETE'
  const expected = [CODES.notFound, CODES.changed, CODES.unknown]
  const body = wanted ? toJson(wanted) : null
  let found = shown && { plant: shown, etag: tagOf(shown) }
  for (let round = 1; isSame(found?.plant, shown); round++) {
    if (round > 2) throw new Refusal(CODES.changed, describeRefusal(CODES.changed, method))
    const headers = found ? { 'if-match': found.etag } : { 'if-none-match': '*' }
    const { error, plants } = await send(method, `plants/${id}`, { body, headers, expected })
    if (error === 0 || error === CODES.notFound) return { stored: say(id, plants[0]), isDone: error === 0 }
    found = await look(method, id)
    if (error !== CODES.unknown) continue
    if (!isSame(found?.plant, shown) || isSame(shown, wanted)) return { stored: found?.plant, isDone: true }
    throw new Refusal(CODES.notDone, describeRefusal(CODES.notDone, method))
  }
  return { stored: found?.plant, isDone: false }
}

/** The `ETag` of a plant, as this version of the server computes it. */
const tagOf = (plant: Plant) => entityTagOf(JSON.stringify(plant, FIELD_NAMES.slice(1)), { hash: hashOf })

/** Whether two plants have the same values, or neither is there. */
export const isSame = (one: Partial<Plant> | undefined, other: Partial<Plant> | undefined): boolean =>
  FIELD_NAMES.every((field) => one?.[field] === other?.[field])

/** The JSON of a plant. An integer keeps the digits that were typed. Any other id is sent as text, and refused. */
export function toJson(plant: Partial<Plant>): string {
  const { id } = plant
  const json = JSON.stringify(plant, FIELD_NAMES)
  return id !== undefined && /^(?:0|-?[1-9]\d*)$/.test(id) ? json.replace(`"${id}"`, id) : json
}
