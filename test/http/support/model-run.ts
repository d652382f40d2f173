import { expect } from 'bun:test'
import type { Plant } from '../../../src/domain/plant.ts'
import { type NewToken, OTHERS_SEEN_WITHIN_MS, type Store } from '../../../src/domain/store.ts'
import { makeToken, NOBODY, type Scope, type UserId } from '../../../src/domain/token.ts'
import { EXECUTABLE } from '../../support/executable.ts'
import { until } from '../../support/until.ts'
import { createModel, type Expected, factsOf, type KnownToken, outcomeOf } from './model.ts'
import { type Action, type Asked, type Step, USERS } from './model-steps.ts'
import type { Answer, Service } from './service.ts'

/** Sends reads as clients do that have the last answers, and compares the tags of all answers. */
function rememberReads(service: Service) {
  const lastAnswers = new Map<string, { readonly etag: string; readonly expected: Expected }>()
  const etags = new Map<string, string>()
  const contents = new Map<string, string>()
  return {
    /** Expects an answer. A tag depends on the content alone; without a content there is none. */
    async expect({ text: token }: { readonly text: string }, path: string, expected: Expected, content?: string) {
      const key = `${token} ${path}`
      const last = lastAnswers.get(key)
      const headers: Record<string, string> = last === undefined ? {} : { 'if-none-match': last.etag }
      const answer = await service.request('GET', path, { token, headers })
      const etag = answer.headers.get('etag')
      if (last !== undefined && Bun.deepEquals(last.expected, expected)) {
        expect([answer.status, answer.text, etag]).toEqual([304, '', last.etag])
        return
      }
      expect(said(answer)).toEqual(expected)
      expect(etag !== null).toBe(content !== undefined && expected.status === 200)
      if (content === undefined || etag === null) return
      expect(etags.getOrInsert(content, etag)).toBe(etag)
      expect(contents.getOrInsert(etag, content)).toBe(content)
      lastAnswers.set(key, { etag, expected })
    },
  }
}

/** The parts of an answer that the model knows. */
const said = ({ status, headers, text, body }: Answer): Expected => ({
  status,
  body: body?.error ?? text,
  link: headers.get('link'),
})

/** The query string with these parameters. */
function queryOf(asked: Asked): string {
  const parameters = Object.entries(asked).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}

type ValueOf<Kind extends Action['kind']> = Extract<Action, { kind: Kind }>['value']
type AnyToken = ValueOf<'createTokens'>['tokens'][number]
type NewUser = Pick<AnyToken, 'user' | 'scope'> & Partial<AnyToken>
type TokenText = NewToken & { readonly text: string }

/** A list that is cached, and one that never is. */
const ASKED_ALWAYS: readonly Asked[] = [{ limit: 2 }, {}]
const PLANT_ACTIONS = ['create', 'put', 'delete', 'follow']

/** Steps of users of their own against a service with a quota, and against the model. */
export class ModelRun {
  readonly #model
  readonly #nowMs = Date.now()
  /** All tokens, also those of deleted users. */
  readonly #all: KnownToken[] = []
  readonly #userIds = new Set<UserId>()
  readonly #reads

  constructor(
    readonly service: Service,
    /** Another opening of the same store, without a quota. It shows within `seenWithinMs` what it has changed. */
    readonly other: Store,
    readonly options: { readonly prefix: string; readonly quotaPlants: number; readonly seenWithinMs: number },
  ) {
    this.#model = createModel(options.quotaPlants)
    this.#reads = rememberReads(service)
  }

  /** Creates the first users and tokens. */
  async begin(): Promise<void> {
    const scopes: readonly Scope[] = ['write', 'read']
    const tokens = USERS.slice(0, 2).flatMap((user) => scopes.map((scope) => this.#newToken({ user, scope })))
    await this.#createTokens(this.service.store, tokens)
  }

  /** Takes a step, and compares its outcome and all that clients and administrators see afterwards. */
  async take(step: Step): Promise<void> {
    await this.#perform(step, step.action)
    const isPlain = PLANT_ACTIONS.includes(step.action.kind)
    if (!isPlain && (step.isElsewhere || EXECUTABLE !== undefined)) await this.#untilSeen(step)
    await this.#expectReads(step)
    if (!isPlain) await this.#expectFacts(step)
  }

  /** Waits as long as a change of another process may take to show. On another machine only those of tokens take longer. */
  async #untilSeen(step: Step): Promise<void> {
    const deadlineMs = performance.now() + this.options.seenWithinMs
    await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
    const isSeen = () =>
      this.#expectReads(step).then(
        () => true,
        () => false,
      )
    await until('the change is seen', async () => performance.now() >= deadlineMs || (await isSeen()))
  }

  async #perform({ isElsewhere, by }: Step, { kind, value }: Action): Promise<void> {
    const store = isElsewhere ? this.other : this.service.store
    const model = this.#model
    const name = (user: string) => this.options.prefix + user
    const at = (offsetMs: number) => this.#nowMs + offsetMs
    const expectOutcome = async (called: Promise<unknown>, expected: object) =>
      expect(await outcomeOf(called)).toEqual(expected as never)
    switch (kind) {
      case 'create':
        return this.#create(this.#tokenAt(by), value)
      case 'put':
        return this.#change(this.#tokenAt(by), value, value.plant)
      case 'delete':
        return this.#change(this.#tokenAt(by), value)
      case 'follow':
        return this.#follow(this.#tokenAt(by), value)
      case 'createTokens':
        return this.#createTokens(store, this.#wanted(value))
      case 'rotate':
        return this.#rotate(store, value)
      case 'revoke': {
        const token = this.#tokenAt(value.index)
        const revoking = store.revokeTokens({ id: token.id }, at(value.at))
        return expectOutcome(revoking, model.revoke(token, at(value.at)))
      }
      case 'revokeAll': {
        const userName = name(value.user)
        return expectOutcome(store.revokeTokens({ userName }, at(value.at)), model.revokeAll(userName, at(value.at)))
      }
      case 'touch': {
        const tokens = new Set(value.indexes.map(this.#tokenAt))
        for (const token of tokens) model.touch(token, at(value.at), at(value.now))
        return store.touchTokens(new Map([...tokens].map(({ id }) => [id, at(value.at)])), at(value.now))
      }
      case 'block': {
        const asked = [name(value.user), at(value.at), value.createsUser] as const
        return expectOutcome(store.setUserBlock(...asked), model.block(...asked))
      }
      case 'unblock':
        return expectOutcome(store.setUserBlock(name(value), undefined), model.block(name(value), undefined, false))
      case 'deleteUser':
        return expectOutcome(store.deleteUser(name(value)), model.deleteUser(name(value)))
      case 'createFirst': {
        const { id, ...plant } = value.plant
        const user = { id: NOBODY, name: name(value.user), createdAtMs: at(value.at) }
        const creating = store
          .ensureUser(user.name, user.createdAtMs)
          .then((made) => store.createPlant(made, value.plant))
        return expectOutcome(creating, model.createFirst(user.name, user.createdAtMs, id, plant, !isElsewhere))
      }
      case 'remove': {
        const user = await store.findUser(name(value.user))
        const deleting = store.deletePlant(user?.id ?? 0, value.id)
        return expectOutcome(deleting, model.remove(name(value.user), value.id))
      }
      case 'restart':
        return this.service.restart()
    }
  }

  async #create(token: KnownToken, { id, ...plant }: ValueOf<'create'>): Promise<void> {
    const body = JSON.stringify({ id: 0, ...plant }).replace('0', String(id))
    const answer = await this.service.create(body, { token: token.text })
    expect(said(answer)).toEqual(this.#model.create(token, id, plant))
    await this.#expectPlant(id)
  }

  /** Puts a plant, or deletes it without a `plant`. */
  async #change(token: KnownToken, { index, precondition, ...other }: ValueOf<'delete'>, plant?: Plant): Promise<void> {
    const own = [...(this.#model.users.get(token.userName)?.plants.keys() ?? [])]
    const id = own[index] ?? other.id
    const etag = (await this.service.get(id, { token: token.text })).headers.get('etag') ?? '"none"'
    const headers = precondition === undefined ? {} : { [precondition.header]: precondition.value(etag) }
    const options = { token: token.text, headers }
    const answer = await (plant ? this.service.put(id, plant, options) : this.service.delete(id, options))
    const { put, delete: remove } = this.#model
    expect(said(answer)).toEqual(plant ? put(token, id, plant, precondition) : remove(token, id, precondition))
    await this.#expectPlant(id)
  }

  /** Reads all pages that `Link` leads through. */
  async #follow(token: KnownToken, first: ValueOf<'follow'>): Promise<void> {
    const pages: string[] = []
    for (let asked: Asked | undefined = first; asked !== undefined; ) {
      const { status, body, link }: Expected = await this.#expectList(token, asked)
      if (status !== 200) return
      pages.push(...(body === '[]' ? [] : [String(body).slice(1, -1)]))
      const after: string | undefined = /after=(-?\d+)/.exec(link ?? '')?.[1]
      asked = after === undefined ? undefined : { ...first, after: BigInt(after) }
    }
    expect(`[${pages.join()}]`).toBe(String(this.#model.list(token, { include: first.include }).body))
  }

  #newToken({ user, scope, label, expires }: NewUser): TokenText {
    const request = { userName: this.options.prefix + user, scope, label, expiresAfterMs: expires }
    const { text, newToken } = makeToken(request, this.#nowMs)
    return { ...newToken, text }
  }

  /** New tokens, and maybe one that is stored, before the last of them. */
  #wanted({ tokens, repeats, as }: ValueOf<'createTokens'>): readonly TokenText[] {
    const wanted = tokens.map((token) => this.#newToken(token))
    if (repeats === undefined) return wanted
    const known = this.#tokenAt(repeats)
    return wanted.toSpliced(-1, 0, as === undefined ? known : { ...known, userName: this.options.prefix + as })
  }

  async #createTokens(store: Store, tokens: readonly TokenText[]): Promise<void> {
    const created = await store.createTokens(tokens)
    if (created.created > 0) this.#expectNewId(created.firstId)
    expect({ value: created }).toEqual(this.#model.createTokens(tokens, created.firstId) as never)
    this.#know()
  }

  async #rotate(store: Store, { index, at, overlapMs }: ValueOf<'rotate'>): Promise<void> {
    const token = this.#tokenAt(index)
    const { text, hash } = this.#newToken({ user: '', scope: 'read' })
    const next = { ...token, hash, text, createdAtMs: this.#nowMs + at, expiresAtMs: undefined }
    const outcome = await outcomeOf(store.rotateToken(token.id, next, overlapMs))
    const { id = 0 } = 'value' in outcome ? (outcome.value as { id?: number }) : {}
    if (id > 0) this.#expectNewId(id)
    expect(outcome).toEqual(this.#model.rotate(token, next, overlapMs, id) as never)
    this.#know()
  }

  #tokenAt = (index: number): KnownToken => this.#all[index % this.#all.length] as KnownToken

  /** No id of a token is given twice. */
  #expectNewId = (id: number) => expect(id).toBeGreaterThan(Math.max(0, ...this.#all.map((token) => token.id)))

  #know(): void {
    for (const token of this.#model.tokens) {
      const at = this.#all.findIndex(({ text }) => text === token.text)
      this.#all[at === -1 ? this.#all.length : at] = token
    }
  }

  /** What clients see with each token. */
  async #expectReads({ asked }: Step): Promise<void> {
    const queries = [asked, ...ASKED_ALWAYS]
    await Promise.all(this.#all.flatMap((token) => queries.map((query) => this.#expectList(token, query))))
  }

  async #expectList(token: KnownToken, asked: Asked): Promise<Expected> {
    const expected = this.#model.list(token, asked)
    const isTagged = asked.limit !== undefined
    await this.#reads.expect(
      token,
      `/plants${queryOf(asked)}`,
      expected,
      isTagged ? `${expected.body} ${expected.link}` : undefined,
    )
    return expected
  }

  async #expectPlant(id: bigint): Promise<void> {
    for (const token of this.#all) {
      const { body } = this.#model.get(token, id, undefined)
      for (const include of [undefined, 'id'] as const) {
        const expected = this.#model.get(token, id, include)
        await this.#reads.expect(token, `/plants/${id}${queryOf({ include })}`, expected, String(body))
      }
    }
  }

  /** What administrators see, in both openings of the store. */
  async #expectFacts({ page }: Step): Promise<void> {
    const { prefix } = this.options
    for (const [name, user] of this.#model.users) {
      const found = await this.other.findUser(name)
      if (user.id === undefined) expect(this.#userIds.has(found?.id ?? 0)).toBe(false)
      user.id ??= found?.id ?? 0
      this.#userIds.add(user.id)
      expect(found).toEqual({ id: user.id, blockedAtMs: user.blockedAtMs })
    }
    const facts = factsOf(this.#model, EXECUTABLE === undefined)
    const [firstUser = { name: prefix }] = facts.users
    const before = Math.min(...this.#all.map(({ id }) => id)) - 1
    for (const store of [this.service.store, this.other]) {
      expect(await store.listUsers({ after: prefix })).toEqual(facts.users)
      const others = facts.users.slice(1, 1 + page)
      if (facts.users.length > 0) expect(await store.listUsers({ after: firstUser.name, limit: page })).toEqual(others)
      expect(await store.listTokens({ after: before })).toMatchObject(facts.tokens)
    }
  }
}
