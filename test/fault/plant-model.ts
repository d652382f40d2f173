import { entityTagOf } from '../../src/domain/etag.ts'
import type { Random } from '../support/random.ts'
import type { PlantRows } from './history.ts'
import type { Server } from './test-database.ts'

/** How many plants a worker writes and reads. */
const PLANTS_PER_WORKER = 4
/** How long a worker waits after a 503. */
const PAUSE_MS = 100

/** A plant as the model knows it: its JSON, or nothing if it is not there. */
type State = string | undefined

/** A request, and by the state of its plant what it is answered and what it leaves. */
type Form = readonly [method: string, header: string, expected: (state: State, sent: State) => readonly [number, State]]

/** All forms of a request for one plant. `TAG` stands for its entity tag, and `OTHER` for that of no plant. */
const FORMS: readonly [Form, ...Form[]] = [
  ['POST', '', (state, sent) => (state === undefined ? [200, sent] : [409, state])],
  ['PUT', '', (state, sent) => [state === undefined ? 201 : 200, sent]],
  ['PUT', 'if-match: *', (state, sent) => (state === undefined ? [412, state] : [200, sent])],
  ['PUT', 'if-match: TAG', (state, sent) => (state === undefined ? [412, state] : [200, sent])],
  ['PUT', 'if-match: OTHER', (state) => [412, state]],
  ['PUT', 'if-none-match: *', (state, sent) => (state === undefined ? [201, sent] : [412, state])],
  ['PUT', 'if-none-match: OTHER', (state, sent) => [state === undefined ? 201 : 200, sent]],
  ['PUT', 'if-none-match: TAG', (state, sent) => (state === undefined ? [201, sent] : [412, state])],
  ['DELETE', '', (state) => [state === undefined ? 404 : 204, undefined]],
  ['DELETE', 'if-match: TAG', (state) => [state === undefined ? 404 : 204, undefined]],
  ['DELETE', 'if-match: OTHER', (state) => [state === undefined ? 404 : 412, state]],
  ['GET', '', (state) => [state === undefined ? 404 : 200, state]],
  ['HEAD', '', (state) => [state === undefined ? 404 : 200, state]],
]

const tagOf = (state = 'other'): string => entityTagOf(state, Bun.SHA256)

/**
 * Workers that send all forms of requests for plants of their own to servers of one database, each after the last answer, and
 * compare the answers with a model. After a write of unknown outcome a worker takes another plant.
 */
export function startPlantModel(
  servers: readonly Pick<Server, 'url'>[],
  token: string,
  random: Random,
  workers: number,
) {
  const wrong: string[] = []
  /** The states that each plant may have. */
  const states = new Map<number, readonly State[]>()
  const counts = { answered: 0, refused: 0, unknown: 0 }
  const forms = new Set<Form>()
  let [lastId, contents, living, isStopped] = [0, 0, workers, false]

  /** Resolves to the state of the plant after the answer, or to `undefined` if the answer does not tell. */
  const send = async (id: number, state: State): Promise<readonly [State] | undefined> => {
    const form = FORMS[random(FORMS.length)] ?? FORMS[0]
    const [method, header, expected] = form
    const [name = '', value = ''] = header.replace('TAG', tagOf(state)).replace('OTHER', tagOf()).split(': ')
    const plant = { name: `Fern ${++contents}`, ...(random(2) === 0 && { tag: 'indoor' }) }
    const isPost = method === 'POST'
    const hasBody = isPost || method === 'PUT'
    const [status, next] = expected(state, JSON.stringify(plant))
    const response = await fetch(`${servers[random(servers.length)]?.url}/plants${isPost ? '' : `/${id}`}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...(name && { [name]: value }) },
      ...(hasBody && { body: JSON.stringify(isPost ? { id, ...plant } : plant) }),
    })
    const text = await response.text()
    if (response.status === 503) {
      const isUnknown = text.includes('took effect is unknown')
      counts[isUnknown ? 'unknown' : 'refused']++
      if (isUnknown) states.set(id, [state, next])
      await Bun.sleep(PAUSE_MS)
      return isUnknown ? undefined : [state]
    }
    counts.answered++
    forms.add(form)
    const isRight = response.status === status && (method !== 'GET' || state === undefined || text === state)
    if (!isRight) wrong.push(`${method} ${header} of ${id}, ${state}: ${response.status} ${text}`)
    states.set(id, [next])
    return [next]
  }
  const work = async () => {
    const own: [id: number, state: State][] = []
    while (!isStopped) {
      const index = random(PLANTS_PER_WORKER)
      const [id, state] = own[index] ?? [++lastId, undefined]
      const told = await send(id, state)
      own[index] = told === undefined ? [++lastId, undefined] : [id, told[0]]
    }
  }
  const running = Array.from({ length: workers }, () =>
    work().catch((error: unknown) => {
      living--
      wrong.push(String(error))
    }),
  )

  return {
    counts: () => ({ ...counts, living, forms: forms.size }),
    /** Resolves when all that was sent has been answered. */
    async stop() {
      isStopped = true
      await Promise.all(running)
    },
    /** The answers and the stored plants that the model does not allow. */
    wrong(rows: PlantRows): readonly string[] {
      const stored = new Map(
        [...rows].map(([id, { name, tag }]) => [id, JSON.stringify({ name, tag: tag ?? undefined })]),
      )
      const others = [...stored.keys()].filter((id) => !states.has(id)).map((id) => `nobody made ${id}`)
      const lost = [...states].filter(([id, possible]) => !possible.includes(stored.get(id)))
      return [...wrong, ...others, ...lost.map(([id, possible]) => `${id} is ${stored.get(id)}, not ${possible}`)]
    },
  }
}

/** How many forms the model has. */
export const FORMS_COUNT = FORMS.length
