import { Elysia } from 'elysia'
import { AppError } from '../domain/error.ts'
import { parseInt64Decimal } from '../domain/int64.ts'
import { toPlant } from '../domain/plant.ts'
import type { Store } from '../domain/store.ts'
import type { AdmissionLimits } from './access/admission.ts'
import { type Authentication, requireWrite } from './access/auth.ts'
import type { Caller, Callers } from './access/callers.ts'
import { requireRoom, takeLeave } from './access/in-flight.ts'
import { readNewPlant } from './body.ts'
import { allowSlowReader, contextOf } from './context.ts'
import { json } from './json.ts'
import { answerList, cappedList, streamedList, streamedListHead } from './list.ts'
import { parseListQuery } from './query.ts'

/** How much one request may send, and one answer hold. */
export interface PlantLimits {
  readonly maxBodyBytes: number
  /** The most plants in one answer; `undefined` where there is no such limit. */
  readonly listMax: number | undefined
}

type PlantStore = Pick<Store, 'createPlant' | 'listPlants' | 'deletePlant' | 'plantsVersion'>

/** Told of an error that cut an answer after its status was sent. */
type OnCut = (request: Request, error: unknown) => void

/** The plants of the calling user. Elysia reads no body here: `readNewPlant` does, after the token is known. */
export const plants = (
  store: PlantStore,
  callers: Callers,
  authentication: Authentication,
  limits: PlantLimits & Pick<AdmissionLimits, 'maxInFlight'>,
  onCut: OnCut,
) => {
  const requireRoomFor = (request: Request) => {
    if (limits.maxInFlight !== undefined) requireRoom(contextOf(request))
  }

  const list = async ({ request, caller }: { readonly request: Request; readonly caller: Caller }) => {
    const { limit, after } = parseListQuery(request.url)
    requireRoomFor(request)
    const user = caller.token.userId
    const cap = Math.min(limit ?? Number.POSITIVE_INFINITY, limits.listMax ?? Number.POSITIVE_INFINITY)
    if (Number.isFinite(cap)) {
      const version = store.plantsVersion(user)
      const capped = await cappedList(store.listPlants, user, { limit: cap, after })
      callers.rememberList(request.headers.get('authorization') ?? '', request.url, caller, version, capped)
      if (typeof capped.body !== 'string') allowSlowReader(contextOf(request))
      return answerList(capped, request)
    }
    if (request.method === 'HEAD') return streamedListHead()
    const context = contextOf(request)
    const response = await streamedList(store.listPlants, user, after, {
      onMore: () => allowSlowReader(context),
      onEnd(error) {
        leave()
        if (error !== undefined) onCut(request, error)
      },
    })
    // The list is under way until its end, which cannot come before somebody reads it.
    const leave = takeLeave(context)
    return response
  }

  return new Elysia({ name: 'plants' })
    .use(authentication)
    .post(
      '/plants',
      async ({ request, caller: { token } }) => {
        requireWrite(token)
        const plant = await readNewPlant(request, limits.maxBodyBytes)
        requireRoomFor(request)
        await store.createPlant(token.userId, plant)
        return json(JSON.stringify(toPlant(plant)))
      },
      { parse: 'none' },
    )
    .get('/plants', list, { parse: 'none' })
    .head('/plants', list, { parse: 'none' })
    .delete(
      '/plants/:id',
      async ({ params, request, caller: { token } }) => {
        requireWrite(token)
        // A broken percent-encoding arrives as null.
        const id = parseInt64Decimal(params.id ?? '')
        if (id === undefined) throw new AppError('id_invalid')
        requireRoomFor(request)
        await store.deletePlant(token.userId, id)
        return new Response(null, { status: 204 })
      },
      { parse: 'none' },
    )
}
