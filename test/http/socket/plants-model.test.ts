import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import {
  isOptional,
  NEW_PLANT_FIELDS,
  type NewPlant,
  PLANT_FIELDS,
  type Plant,
  toPlant,
} from '../../../src/domain/plant.ts'
import { LIMIT_MAX } from '../../../src/domain/store.ts'
import type { Scope } from '../../../src/domain/token.ts'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../../support/properties.ts'
import { type Answer, type Service, startService } from '../support/service.ts'
import { STORES_ON_SOCKETS } from '../support/transports.ts'

/** Few ids, so that they meet again: in an order in which they are not listed, neither as numbers nor as text. */
const IDS = [10n, 9n, -1n, 0n, INT64_MAX, INT64_MIN, 9007199254740993n, 9007199254740992n, -10n, 1n]
const USERS = ['Ada', 'Ben', 'Cy']
const STEPS_MAX = 25

/** UTF-16 units of a long text. Two such texts are within the default limit of bodies. */
const LONG_UNITS = 4000

const codePoints = (maxLength: number) =>
  fc.string({ unit: 'binary', maxLength }).map((text) => text.replaceAll('\0', '\u{10ffff}'))

/** Any text that a plant can have: all of Unicode except U+0000, empty and long. */
const anyText: fc.Arbitrary<string> = fc.oneof(
  codePoints(30),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom('', ' ', '\ufeff', '\u2028\u2029', '\u0001\u001f\u007f', '\ufffe\uffff', '\ud7ff\ue000'),
  fc.constantFrom('null', '5', '"', '\\', '\\u0000', '\\ud83c', '{"id":1}', '__proto__', '%00', '<script>'),
  codePoints(8).map((text) => text.repeat(text === '' ? 0 : LONG_UNITS / text.length)),
)

const anyId = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...IDS) },
  { weight: 1, arbitrary: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }) },
)
/** Any plant with one of these ids, with each optional field or without. */
const anyPlant = fc.record(
  { id: anyId, ...Object.fromEntries(PLANT_FIELDS.map((field) => [field, anyText])) },
  { requiredKeys: NEW_PLANT_FIELDS.filter((field) => !isOptional(field)) as ['id'] },
) as fc.Arbitrary<NewPlant>
const anyWho = fc.record({
  user: fc.constantFrom(...USERS),
  scope: fc.constantFrom<Scope>('write', 'write', 'write', 'read'),
})
const anyAsked: fc.Arbitrary<Asked> = fc.record(
  {
    limit: fc.oneof({ weight: 9, arbitrary: fc.nat(IDS.length + 1) }, fc.constant(LIMIT_MAX)),
    after: anyId,
    include: fc.constant('id' as const),
  },
  { requiredKeys: [] },
)

/** A step: the request of one user, and the list that each user then asks for. */
const anyStep = fc.record({
  who: anyWho,
  action: fc.oneof(
    { weight: 4, arbitrary: fc.record({ create: anyPlant }) },
    { weight: 2, arbitrary: fc.record({ delete: anyId }) },
    { weight: 1, arbitrary: fc.record({ follow: fc.integer({ min: 1, max: 4 }) }) },
  ),
  thenAsked: anyAsked,
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

describe.each(STORES_ON_SOCKETS)('anything that several users do, $name', (transport) => {
  test(
    'is answered as by the model, and so is a get and a list of every user after every step',
    async () => {
      await using service = await startService(transport)
      const anySteps = fc.array(anyStep, { maxLength: STEPS_MAX })

      await expectProperty(`several users, ${transport.name}`, anySteps, (steps) => take(service, steps))
    },
    PROPERTY_TIMEOUT_MS,
  )
})

/** Takes steps as new users, and compares each answer with the answer of the model. */
async function take(service: Service, steps: readonly Step[]): Promise<void> {
  const tokenOf = await createUsers(service)
  const model = createModel()
  const expectList = async (who: Who, asked: Asked): Promise<Expected> => {
    const expected = model.list(who, asked)
    expect(said(await service.list(queryOf(asked), { token: tokenOf(who) }))).toEqual(expected)
    return expected
  }
  const expectPlant = async (id: bigint) => {
    for (const user of USERS) {
      const who: Who = { user, scope: 'read' }
      for (const include of [undefined, 'id'] as const) {
        const path = include === undefined ? String(id) : `${id}?include=id`
        expect(said(await service.get(path, { token: tokenOf(who) }))).toEqual(model.get(who, id, include))
      }
    }
  }
  for (const { who, action, thenAsked } of steps) {
    const token = tokenOf(who)
    if ('create' in action) {
      const { id, ...plant } = action.create
      const body = JSON.stringify({ id: 0, ...plant }).replace('0', String(id))
      expect(said(await service.create(body, { token }))).toEqual(model.create(who, action.create))
      await expectPlant(id)
    } else if ('delete' in action) {
      expect(said(await service.delete(action.delete, { token }))).toEqual(model.delete(who, action.delete))
      await expectPlant(action.delete)
    } else {
      const { include } = thenAsked
      const pages = await follow((asked) => expectList(who, asked), { limit: action.follow, include })
      expect(pages.flat()).toEqual([model.list(who, { include }).body].flat())
    }
    for (const user of USERS) {
      await expectList({ user, scope: 'read' }, {})
      await expectList({ user, scope: 'write' }, thenAsked)
    }
  }
}

/** All pages that `Link` leads through. */
async function follow(list: (asked: Asked) => Promise<Expected>, first: Asked) {
  const pages: Expected['body'][] = []
  for (let asked: Asked | undefined = first; asked !== undefined; ) {
    const { body, link }: Expected = await list(asked)
    pages.push(body)
    const after = link === null ? undefined : /after=(-?\d+)/.exec(link)?.[1]
    asked = after === undefined ? undefined : { ...first, after: BigInt(after) }
  }
  return pages
}

/** Creates users without plants, with a token of each scope. */
async function createUsers({ createToken }: Service) {
  const run = crypto.randomUUID()
  const tokens = new Map<string, string>()
  for (const user of USERS) {
    for (const scope of ['read', 'write'] as const) {
      tokens.set(`${scope} ${user}`, (await createToken({ user: `${user} ${run}`, scope })).text)
    }
  }
  return ({ user, scope }: Who): string => tokens.get(`${scope} ${user}`) ?? ''
}

/** The parts of an answer that the model knows. */
const said = ({ status, headers, text, body }: Answer): Expected => ({
  status,
  ...(body !== undefined && { body: body.error ?? JSON.parse(text, exactId) }),
  link: headers.get('link'),
})

/** Reads an id to the last digit. */
const exactId = (key: string, value: unknown, { source = '' }: { readonly source?: string } = {}) =>
  key === 'id' ? BigInt(source) : value

/** The parameters of a list. */
interface Asked {
  readonly limit?: number
  readonly after?: bigint
  readonly include?: Include
}
type Include = 'id' | undefined

/** The plants that a list of a user must show, by id. */
type Model = Map<bigint, Plant>

/** The query string with these parameters. */
function queryOf(asked: Asked): string {
  const parameters = Object.entries(asked).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}

/** The answer to a list: the plants in the order of their ids, and the `Link` if more follow. */
function expectedList(model: Model, { limit = Number.POSITIVE_INFINITY, after, include }: Asked) {
  const following = [...model].filter(([id]) => after === undefined || id > after).sort(([a], [b]) => (a < b ? -1 : 1))
  const page = following.slice(0, Math.min(limit, following.length))
  const leadsOn = page.length > 0 && page.length < following.length
  return {
    shown: page.map(([id, plant]) => shownPlant(id, plant, include)),
    link: leadsOn ? `<?limit=${limit}&after=${page.at(-1)?.[0]}${include ? '&include=id' : ''}>; rel="next"` : null,
  }
}

/** A plant as a client sees it, with its id if the client asks for it. */
const shownPlant = (id: bigint, plant: Plant, include: Include) => (include ? { id, ...plant } : plant)

/** The user and the scope of the token of a request. */
interface Who {
  readonly user: string
  readonly scope: Scope
}

/** An answer as far as the model knows it. */
interface Expected {
  readonly status: number
  /** The plants, or the code of a refusal. */
  readonly body?: Plant | readonly Plant[] | number
  readonly link: string | null
}

/** A model of the service: the plants of its users, and the answer to each request. */
function createModel() {
  const plants = new Map<string, Model>()
  const plantsOf = (user: string): Model => plants.getOrInsertComputed(user, () => new Map())
  return {
    create({ user, scope }: Who, plant: NewPlant): Expected {
      if (scope === 'read') return refusal(40301)
      if (plantsOf(user).has(plant.id)) return refusal(40901)
      plantsOf(user).set(plant.id, toPlant(plant))
      return { status: 200, body: toPlant(plant), link: null }
    },
    get({ user }: Who, id: bigint, include: Include): Expected {
      const plant = plantsOf(user).get(id)
      if (plant === undefined) return refusal(40402)
      return { status: 200, body: shownPlant(id, plant, include), link: null }
    },
    delete({ user, scope }: Who, id: bigint): Expected {
      if (scope === 'read') return refusal(40301)
      return plantsOf(user).delete(id) ? { status: 204, link: null } : refusal(40402)
    },
    list({ user }: Who, asked: Asked): Expected {
      const { shown, link } = expectedList(plantsOf(user), asked)
      return { status: 200, body: shown, link }
    },
  }
}

const refusal = (code: number): Expected => ({ status: Math.floor(code / 100), body: code, link: null })
