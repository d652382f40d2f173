import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { NewPlant, Plant, toPlant } from '../domain/plant.ts'
import { json } from './answers.ts'
import type { AppParts } from './app.ts'
import { authentication } from './authentication.ts'
import { readNewPlant } from './body.ts'
import { operation } from './docs/operation.ts'
import { listPlants } from './lists/list-plants.ts'
import { IfNoneMatch, ListQuery, PlantPath } from './query.ts'

/** The plants of the calling user. Each route checks in this order: token, scope, path and query, body. Then it asks the store. */
export const plants = (parts: AppParts) => {
  const { store, limits, maxBodyBytes } = parts
  const list = listPlants(parts)
  return (
    new Elysia({ name: 'plants' })
      // A copy, because Elysia writes a name into the model.
      .model({ NewPlant: { ...NewPlant } })
      .use(authentication(parts))
      .get('/plants', list, { query: ListQuery, headers: IfNoneMatch, ...LIST_PLANTS })
      // Elysia's own HEAD would read the whole list.
      .head('/plants', list, { query: ListQuery, detail: { hide: true } })
      .post(
        '/plants',
        async ({ request, headers, caller }) => {
          // Elysia would read the body before the token is known, round large ids, and accept what is not JSON.
          const plant = await readNewPlant(request, headers, maxBodyBytes)
          limits?.requirePlace(request)
          await store.createPlant(caller.userId, plant)
          return json(JSON.stringify(toPlant(plant)))
        },
        { scope: 'write', parse: 'none', body: 'NewPlant', ...CREATE_PLANT },
      )
      .delete(
        '/plants/:id',
        async ({ request, caller, params }) => {
          limits?.requirePlace(request)
          await store.deletePlant(caller.userId, params.id)
          return new Response(null, { status: 204 })
        },
        { scope: 'write', parse: 'none', params: PlantPath, ...DELETE_PLANT },
      )
  )
}

const PLANTS = Type.Array(Plant, { example: [{ name: 'Monstera', tag: 'evergreen' }, { name: 'Fern' }] })

const LIST_PLANTS = operation({
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'The plants of the calling user by ascending id. An answer that is capped, by `limit` or by the operator, has an `ETag`, and a `Link` where more plants follow: follow it until there is none, however many plants an answer holds. Any other is streamed.',
  successes: {
    200: { description: 'The plants', body: PLANTS, headers: ['ETag', 'Link'] },
    304: { description: 'The plants are those of the ETag in If-None-Match', body: Type.Void(), headers: ['ETag'] },
  },
  errors: ['query_invalid'],
})

const CREATE_PLANT = operation({
  operationId: 'createPlant',
  summary: 'Create a plant',
  description: 'Stores a plant for the calling user. When the answer arrives, this is done.',
  successes: {
    200: {
      description: 'The plant, stored',
      body: Plant,
      links: { deletePlant: { operationId: 'deletePlant', parameters: { id: '$request.body#/id' } } },
    },
  },
  errors: [
    'body_not_json',
    'plant_invalid',
    'scope_insufficient',
    'plant_exists',
    'body_too_large',
    'content_type_unsupported',
    'content_encoding_unsupported',
    'store_full',
  ],
})

const DELETE_PLANT = operation({
  operationId: 'deletePlant',
  summary: 'Delete a plant',
  description: 'Deletes a plant of the calling user. When the answer arrives, this is done.',
  successes: { 204: { description: 'The plant is deleted', body: Type.Void() } },
  errors: ['id_invalid', 'scope_insufficient', 'plant_not_found', 'store_full'],
})
