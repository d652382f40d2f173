import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { entityTagOf } from '../domain/etag.ts'
import { FIELDS_IN_WORDS, ListedPlant, NewPlant, Plant, plantJson, toPlant } from '../domain/plant.ts'
import { OTHERS_SEEN_WITHIN_MS } from '../domain/store.ts'
import type { Caller, UserId } from '../domain/token.ts'
import { AppError, kindOf } from '../error.ts'
import { answerTagged, CREATED, ErrorBody, endUnanswered, respond, SUCCESS } from './answers.ts'
import { authentication, requireWrite } from './authentication.ts'
import { readNewPlant, withinTime } from './body.ts'
import { operation } from './docs/operation.ts'
import { conditionOf } from './etag.ts'
import { LIST_PLANTS } from './lists/list-cache.ts'
import { listPlants } from './lists/list-plants.ts'
import type { Services } from './options.ts'
import { IfNoneMatch, ListQuery, PlantPath, PlantQuery, Preconditions } from './query.ts'
import type { RequestContext } from './request-context.ts'

/** The plants of the calling user. Each route checks in order: token, scope, path and query, body. Then it asks the store. */
export const plants = (services: Services) => {
  const { store, tokens, maxBody: maxBodyBytes, idleTimeout, monotonicMs } = services
  const list = listPlants(services)

  /** Creates the plant of a request, or puts it if the path has its id. */
  const write = async ({ request, headers, caller, context, params }: WriteContext): Promise<Response> => {
    const id = params?.id
    if (id !== undefined && 'content-range' in headers) throw new AppError('content_range_unsupported')
    const acceptedMs = monotonicMs()
    // Elysia would read the body before the token is known, round large ids, and accept what is not JSON.
    const reading = readNewPlant(request, headers, maxBodyBytes, id)
    // At a port the runtime ends the connection in time, and at a unix socket it gives all of them `SLOW_READER_S`.
    const plant = await (context.connection?.port === undefined ? withinTime(reading, idleTimeout) : reading)
    if (plant === undefined) return endUnanswered()
    context.plantId = plant.id
    // A command that ends a token waits for so long afterwards. So only a slower body can arrive after that end.
    const isSlow = monotonicMs() - acceptedMs >= OTHERS_SEEN_WITHIN_MS
    const current = isSlow ? await tokens.readTokenAgain(request, caller) : caller
    if (isSlow) requireWrite({ caller: current })
    const isMade = await asUser(services, current, async (user) => {
      if (id !== undefined) return store.putPlant(user, plant, conditionOf(request, tagOf))
      await store.createPlant(user, plant)
      return false
    })
    return respond(plantJson(toPlant(plant)), isMade ? CREATED : SUCCESS)
  }
  return (
    new Elysia({ name: 'plants' })
      .model(copiedModels())
      .use(authentication(services))
      .get('/plants', list, { query: ListQuery, headers: IfNoneMatch, ...LIST })
      // Elysia's own HEAD would read the whole list.
      .head('/plants', list, { query: ListQuery, detail: { hide: true } })
      .post('/plants', write, { writes: true, parse: 'none', body: 'NewPlant', ...CREATE })
      .get(
        '/plants/:id',
        async ({ request, caller, params: { id }, query: { include } }) => {
          const plant = await store.getPlant(caller.userId, id)
          const json = plantJson(plant)
          const body = include === undefined ? json : plantJson(plant, id)
          const etag = entityTagOf(json, Bun.SHA256)
          return answerTagged(request, { body, bodyBytes: Buffer.byteLength(body), etag, link: '' })
        },
        { params: PlantPath, query: PlantQuery, headers: IfNoneMatch, ...GET },
      )
      .put('/plants/:id', write, {
        ...{ writes: true, parse: 'none', params: PlantPath, headers: Preconditions, body: 'Plant' },
        ...PUT,
      })
      .delete(
        '/plants/:id',
        async ({ request, caller, context, params: { id } }) => {
          context.plantId = id
          await store.deletePlant(caller.userId, id, conditionOf(request, tagOf))
          return new Response(null, { status: 204 })
        },
        { writes: true, parse: 'none', params: PlantPath, headers: Preconditions, ...DELETE },
      )
  )
}

/** Writes as the user of a caller. That of a JWT is made when a write misses it: at the first one, and after `user delete`. */
async function asUser<T>({ store, nowMs }: Services, caller: Caller, write: (user: UserId) => Promise<T>): Promise<T> {
  try {
    return await write(caller.userId)
  } catch (error) {
    if (kindOf(error) !== 'token_invalid' || caller.subject === undefined) throw error
    return write(await store.ensureUser(caller.userName, nowMs()))
  }
}

const tagOf = (plant: Plant): string => entityTagOf(plantJson(plant), Bun.SHA256)

/** Elysia writes a name into each model. */
const copiedModels = () => ({
  NewPlant: { ...NewPlant },
  Plant: { ...Plant },
  ListedPlant: { ...ListedPlant },
  Error: { ...ErrorBody },
})

interface WriteContext {
  readonly request: Request
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly caller: Caller
  readonly context: RequestContext
  readonly params?: { readonly id?: bigint }
}

const PLANTS = Type.Array(ListedPlant, { example: [{ name: 'Monstera', tag: 'evergreen' }, { name: 'Fern' }] })

const LIST = operation({
  operationId: LIST_PLANTS,
  summary: 'List plants',
  description:
    'The plants of the calling user by ascending id. A list is capped if it has a `limit`, or if the operator caps all lists. A capped list has an `ETag`, and at most 8 MiB unless its only plant is longer. If more plants follow, it also has a `Link`, except with `limit=0`: follow it until there is none. A list without a cap is streamed, and evaluates no precondition. It is no snapshot, and if it fails half-way or its token ends, the connection ends without the last chunk: an incomplete body is a failure. `If-None-Match` compares weakly, and `*` names any list. `If-Match` is ignored. Each parameter is given at most once.',
  successes: {
    200: { description: 'The plants', body: PLANTS, headers: ['ETag', 'Link'] },
    304: { description: 'The plants are those of the ETag in If-None-Match', body: Type.Void(), headers: ['ETag'] },
  },
  errors: ['query_invalid'],
})

/** A link of a created plant to an operation on it. */
const linkTo = (operationId: string) => ({ operationId, parameters: { id: '$request.body#/id' } })

/** The errors of operations that store the plant of a body. */
const BODY_ERRORS = [
  'plant_invalid',
  'body_not_json',
  'scope_insufficient',
  'quota_exceeded',
  'body_too_large',
  'content_type_unsupported',
  'content_encoding_unsupported',
] as const

const CREATE = operation({
  operationId: 'createPlant',
  summary: 'Create a plant',
  description:
    'Stores a plant for the calling user. When the client reads the answer, the plant is on disk. Preconditions are not evaluated. If a property is given twice, the last one counts.',
  successes: {
    200: {
      description: 'The plant, stored',
      body: Plant,
      links: { getPlant: linkTo('getPlant'), putPlant: linkTo('putPlant'), deletePlant: linkTo('deletePlant') },
    },
  },
  errors: [...BODY_ERRORS, 'plant_exists'],
})

const GET = operation({
  operationId: 'getPlant',
  summary: 'Get a plant',
  description: `A plant of the calling user. Its \`ETag\` depends only on ${FIELDS_IN_WORDS}. \`If-None-Match\` compares weakly, and \`*\` names any plant. \`If-Match\` is ignored. The id is percent-decoded once, and \`include\` is given at most once.`,
  successes: {
    200: { description: 'The plant', body: ListedPlant, headers: ['ETag'] },
    304: { description: 'The plant is that of the ETag in If-None-Match', body: Type.Void(), headers: ['ETag'] },
  },
  errors: ['query_invalid', 'id_invalid', 'plant_not_found'],
})

const PUT = operation({
  operationId: 'putPlant',
  summary: 'Replace a plant, or make it',
  description: `Makes the plant of the path what the body says, whether the user has it or not. When the client reads the answer, the plant is on disk. To repeat the request changes nothing more. A body without a field leaves a plant without it. \`If-Match\` with the \`ETag\` of \`getPlant\` replaces the plant only while it has the same ${FIELDS_IN_WORDS}, and with \`*\` only if there is one. \`If-None-Match: *\` makes the plant only if there is none. \`If-Match\` compares strongly, and \`If-None-Match\` weakly. The id is percent-decoded once.`,
  successes: {
    200: { description: 'The plant, replaced', body: Plant },
    201: { description: 'The plant, made', body: Plant },
  },
  errors: [...BODY_ERRORS, 'id_invalid', 'content_range_unsupported', 'precondition_failed'],
})

const DELETE = operation({
  operationId: 'deletePlant',
  summary: 'Delete a plant',
  description: `Deletes a plant of the calling user. When the client reads the answer, the deletion is on disk. \`If-Match\` with the \`ETag\` of \`getPlant\` deletes the plant only while it has the same ${FIELDS_IN_WORDS}. \`If-Match\` compares strongly, \`If-None-Match\` weakly, and \`*\` names any plant. If the user has no such plant, the answer is 404, whatever the preconditions say. The id is percent-decoded once.`,
  successes: { 204: { description: 'The plant is deleted', body: Type.Void() } },
  errors: ['id_invalid', 'scope_insufficient', 'plant_not_found', 'precondition_failed'],
})
