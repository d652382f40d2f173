// Tested in test/http/openapi.test.ts.
import { Type } from '@sinclair/typebox'
import { FIELDS_IN_WORDS, ListedPlant, Plant } from '../domain/plant.ts'
import { operation } from './docs/operation.ts'
import { LIST_PLANTS } from './lists/list-cache.ts'

const PLANTS = Type.Array(ListedPlant, { example: [{ name: 'Monstera', tag: 'evergreen' }, { name: 'Fern' }] })

export const LIST = operation({
  operationId: LIST_PLANTS,
  summary: 'List plants',
  description: `The plants of the calling user by ascending id. A list is capped if it has a \`limit\`, or if the operator caps
all lists. Each parameter is given at most once.

- A capped list has an \`ETag\`, and at most 8 MiB unless its only plant is longer.
- If more plants follow a capped list, it has a \`Link\`, except with \`limit=0\`: follow it until there is none.
- A list without a cap is streamed, is no snapshot, and evaluates no precondition.
- If a streamed list fails half-way or its token ends, the connection ends without the last chunk: an incomplete
  body is a failure.
- \`If-None-Match\` compares weakly, and \`*\` names any list. \`If-Match\` is ignored.`,
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

export const CREATE = operation({
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

export const GET = operation({
  operationId: 'getPlant',
  summary: 'Get a plant',
  description: `A plant of the calling user. Its \`ETag\` depends only on ${FIELDS_IN_WORDS}. \`If-None-Match\` compares weakly, and \`*\` names any plant. \`If-Match\` is ignored. The id is percent-decoded once, and \`include\` is given at most once.`,
  successes: {
    200: { description: 'The plant', body: ListedPlant, headers: ['ETag'] },
    304: { description: 'The plant is that of the ETag in If-None-Match', body: Type.Void(), headers: ['ETag'] },
  },
  errors: ['query_invalid', 'id_invalid', 'plant_not_found'],
})

export const PUT = operation({
  operationId: 'putPlant',
  summary: 'Replace a plant, or make it',
  description: `Makes the plant of the path what the body says, whether the user has it or not. When the client reads the answer, the plant is on disk. To repeat the request changes nothing more. A body without a field leaves a plant without it. \`If-Match\` with the \`ETag\` of \`getPlant\` replaces the plant only while it has the same ${FIELDS_IN_WORDS}, and with \`*\` only if there is one. \`If-None-Match: *\` makes the plant only if there is none. \`If-Match\` compares strongly, and \`If-None-Match\` weakly. The id is percent-decoded once.`,
  successes: {
    200: { description: 'The plant, replaced', body: Plant },
    201: { description: 'The plant, made', body: Plant },
  },
  errors: [...BODY_ERRORS, 'id_invalid', 'content_range_unsupported', 'precondition_failed'],
})

export const DELETE = operation({
  operationId: 'deletePlant',
  summary: 'Delete a plant',
  description: `Deletes a plant of the calling user. When the client reads the answer, the deletion is on disk. \`If-Match\` with the \`ETag\` of \`getPlant\` deletes the plant only while it has the same ${FIELDS_IN_WORDS}. \`If-Match\` compares strongly, \`If-None-Match\` weakly, and \`*\` names any plant. If the user has no such plant, the answer is 404, whatever the preconditions say. The id is percent-decoded once.`,
  successes: { 204: { description: 'The plant is deleted', body: Type.Void() } },
  errors: ['id_invalid', 'scope_insufficient', 'plant_not_found', 'precondition_failed'],
})
