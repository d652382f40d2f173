import { Elysia } from 'elysia'
import { entityTagOf } from '../domain/etag.ts'
import { ListedPlant, NewPlant, Plant, plantJson, toPlant } from '../domain/plant.ts'
import { OTHERS_SEEN_WITHIN_MS } from '../domain/store.ts'
import type { Caller, UserId } from '../domain/token.ts'
import { AppError, kindOf } from '../error.ts'
import { answerTagged, CREATED, ErrorBody, endUnanswered, respond, SUCCESS } from './answers.ts'
import { authentication, requireWrite } from './authentication.ts'
import { readNewPlant, withinTime } from './body.ts'
import { conditionOf } from './etag.ts'
import { listPlants } from './lists/list-plants.ts'
import type { Services } from './options.ts'
import { CREATE, DELETE, GET, LIST, PUT } from './plants-operations.ts'
import { IfNoneMatch, ListQuery, PlantPath, PlantQuery, Preconditions } from './query.ts'
import type { RequestContext } from './request-context.ts'

/** The plants of the calling user. Each route checks in order: token, scope, path and query, body. Then it asks the store. */
export const plants = (services: Services) => {
  const list = listPlants(services)
  const { write, get, remove } = handlers(services)
  return (
    new Elysia({ name: 'plants' })
      .model(copiedModels())
      .use(authentication(services))
      .get('/plants', list, { query: ListQuery, headers: IfNoneMatch, ...LIST })
      // Elysia's own HEAD would read the whole list.
      .head('/plants', list, { query: ListQuery, detail: { hide: true } })
      .post('/plants', write, { ...WRITE, body: 'NewPlant', ...CREATE })
      .get('/plants/:id', get, { params: PlantPath, query: PlantQuery, headers: IfNoneMatch, ...GET })
      .put('/plants/:id', write, { ...WRITE, params: PlantPath, headers: Preconditions, body: 'Plant', ...PUT })
      .delete('/plants/:id', remove, { ...WRITE, params: PlantPath, headers: Preconditions, ...DELETE })
  )
}

/** A route for tokens that may write. Its handler reads the body. */
const WRITE = { writes: true, parse: 'none' } as const

interface Context<Path> {
  readonly request: Request
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly caller: Caller
  readonly context: RequestContext
  readonly params: Path
  readonly query: { readonly include?: unknown }
}

function handlers(services: Services) {
  const { store, tokens, maxBody: maxBodyBytes, idleTimeout, monotonicMs } = services
  return {
    /** Creates the plant of a request, or puts it if the path has its id. */
    async write({ request, headers, caller, context, params }: Context<{ readonly id?: bigint } | undefined>) {
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
    },

    async get({ request, caller, params, query }: Context<{ readonly id: bigint }>): Promise<Response> {
      const plant = await store.getPlant(caller.userId, params.id)
      const json = plantJson(plant)
      const body = query.include === undefined ? json : plantJson(plant, params.id)
      const etag = entityTagOf(json, Bun.SHA256)
      return answerTagged(request, { body, bodyBytes: Buffer.byteLength(body), etag, link: '' })
    },

    async remove({ request, caller, context, params: { id } }: Context<{ readonly id: bigint }>): Promise<Response> {
      context.plantId = id
      await store.deletePlant(caller.userId, id, conditionOf(request, tagOf))
      return new Response(null, { status: 204 })
    },
  }
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
