import type { TSchema } from '@sinclair/typebox'
import type { OpenAPIV3 } from 'openapi-types'
import { Error } from '../../domain/error.ts'
import { NewPlant, Plant } from '../../domain/plant.ts'
import { LIMIT_MAX } from '../../domain/store.ts'
import { TOKEN_PREFIX } from '../../domain/token.ts'
import { codeTable, ERRORS, type HttpErrorKind, statusOf } from '../errors.ts'
import { JSON_TYPE } from '../json.ts'
import { LIST_MAX_BYTES } from '../long-body.ts'

/** The interface's own version, which clients are made for; the executable has another. */
const INTERFACE_VERSION = '1.0.0'

/** Where no `--public-url` is set, clients resolve every path against the document's own address. */
const SAME_ORIGIN = '/'

/** The OpenAPI 3.0 document of this service: what contract and code promise, said to programs. */
export const openApiDocument = (publicUrl: string | undefined): OpenAPIV3.Document => ({
  openapi: '3.0.3',
  info: {
    title: 'Plant Store',
    version: INTERFACE_VERSION,
    description: DESCRIPTION,
    license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    contact: { name: 'The operator of this server' },
  },
  servers: [{ url: publicUrl ?? SAME_ORIGIN }],
  security: [{ bearerAuth: [] }],
  tags: [{ name: 'plants', description: 'The plants of the calling user' }],
  paths: {
    '/plants': { get: LIST_PLANTS, post: CREATE_PLANT },
    '/plants/{id}': { delete: DELETE_PLANT },
  },
  components: COMPONENTS,
})

const DESCRIPTION =
  "Stores plants. Every operation needs a bearer token and concerns the plants of that token's user alone. A success means that the change is on disk, unless the operator has chosen that a loss of power may take the latest ones."

const ref = (kind: 'schemas' | 'headers', name: string) => ({ $ref: `#/components/${kind}/${name}` })

const COMMON_HEADERS = {
  'X-Request-Id': ref('headers', 'RequestId'),
  'X-Content-Type-Options': ref('headers', 'ContentTypeOptions'),
  'Cache-Control': ref('headers', 'CacheControl'),
}

type Headers = NonNullable<OpenAPIV3.ResponseObject['headers']>

/** What answers of a status carry besides. */
const STATUS_HEADERS: Readonly<Record<number, Headers>> = {
  401: { 'WWW-Authenticate': ref('headers', 'Challenge') },
  403: { 'WWW-Authenticate': ref('headers', 'Challenge') },
  415: { 'Accept-Encoding': ref('headers', 'AcceptEncoding') },
  429: { 'Retry-After': ref('headers', 'RetryAfter') },
  503: { 'Retry-After': ref('headers', 'RetryAfter') },
}

/** The error answers of an operation by status, and `default`, so that a generated client decodes any error. */
function errorResponses(kinds: readonly HttpErrorKind[]): OpenAPIV3.ResponsesObject {
  const common: HttpErrorKind[] = [
    'several_hosts',
    'token_missing',
    'token_invalid',
    'rate_exceeded',
    'bug',
    'store_failed',
    'store_busy',
  ]
  const byStatus = Map.groupBy([...common, ...kinds], statusOf)
  return {
    ...Object.fromEntries([...byStatus].map(([status, group]) => [status, errorResponseOf(status, group)])),
    default: errorAnswer('any other error'),
  }
}

function errorResponseOf(status: number, kinds: readonly HttpErrorKind[]) {
  const whens = kinds.map((kind) => `${ERRORS[kind].code}: ${ERRORS[kind].when}`).join('; ')
  const examples = kinds.map((kind) => {
    const { code, message, when } = ERRORS[kind]
    return [kind, { summary: when, value: { error: code, message } }] as const
  })
  // The specification gives this one status and its description.
  const description = status === 400 ? `unexpected error (${whens})` : whens
  return errorAnswer(description, STATUS_HEADERS[status], { examples: Object.fromEntries(examples) })
}

const errorAnswer = (
  description: string,
  headers: Headers = {},
  examples: OpenAPIV3.MediaTypeObject = {},
): OpenAPIV3.ResponseObject => ({
  description,
  headers: { ...COMMON_HEADERS, ...headers },
  content: { [JSON_TYPE]: { schema: ref('schemas', 'Error'), ...examples } },
})

const EXAMPLE_PLANT = { name: 'Monstera', tag: 'evergreen' }

const CREATE_PLANT: OpenAPIV3.OperationObject = {
  operationId: 'createPlant',
  summary: 'Create a plant',
  description: 'Stores a plant for the calling user. When the answer arrives, this is done.',
  tags: ['plants'],
  requestBody: {
    required: true,
    description: 'The plant. Properties that NewPlant does not have are ignored.',
    content: {
      [JSON_TYPE]: {
        schema: ref('schemas', 'NewPlant'),
        examples: {
          withTag: { summary: 'A plant with a tag', value: { id: 42, ...EXAMPLE_PLANT } },
          withoutTag: { summary: 'A plant without one', value: { id: -7, name: 'Fern' } },
        },
      },
    },
  },
  responses: {
    200: {
      description: 'The plant, stored',
      headers: COMMON_HEADERS,
      content: { [JSON_TYPE]: { schema: ref('schemas', 'Plant'), example: EXAMPLE_PLANT } },
      links: { deletePlant: { operationId: 'deletePlant', parameters: { id: '$request.body#/id' } } },
    },
    ...errorResponses([
      'body_not_json',
      'plant_invalid',
      'scope_insufficient',
      'plant_exists',
      'body_too_large',
      'content_type_unsupported',
      'content_encoding_unsupported',
      'store_full',
    ]),
  },
}

const LIST_MAX_MIB = LIST_MAX_BYTES / 1024 ** 2

const LIST_PLANTS: OpenAPIV3.OperationObject = {
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'The plants of the calling user by ascending id. An answer that is capped, by `limit` or by the operator, has an `ETag`, and a `Link` where more plants follow: follow it until there is none, however many plants an answer holds. Any other is streamed.',
  tags: ['plants'],
  parameters: [
    {
      name: 'limit',
      in: 'query',
      description: `The maximum number of results: digits alone, no leading zero, given once. The operator may allow fewer. The answer also ends before the plant that would make its body longer than ${LIST_MAX_MIB} MiB, but holds at least one plant; then \`Link\` leads on.`,
      required: false,
      schema: { type: 'integer', format: 'int32', minimum: 0, maximum: LIMIT_MAX },
      example: 20,
    },
    {
      name: 'after',
      in: 'query',
      description: 'Only plants with a larger id than this are listed. `Link` carries it.',
      required: false,
      schema: { type: 'integer', format: 'int64' },
    },
    {
      name: 'If-None-Match',
      in: 'header',
      description: 'An `ETag` of an earlier answer, a list of them, or `*`.',
      required: false,
      schema: { type: 'string' },
    },
  ],
  responses: {
    200: {
      description: 'The plants',
      headers: { ...COMMON_HEADERS, ETag: ref('headers', 'ETag'), Link: ref('headers', 'Link') },
      content: {
        [JSON_TYPE]: {
          schema: { type: 'array', items: ref('schemas', 'Plant') },
          example: [EXAMPLE_PLANT, { name: 'Fern' }],
        },
      },
    },
    304: {
      description: 'The plants are those of the ETag in If-None-Match',
      headers: { ...COMMON_HEADERS, ETag: ref('headers', 'ETag') },
    },
    ...errorResponses(['query_invalid']),
  },
}

const DELETE_PLANT: OpenAPIV3.OperationObject = {
  operationId: 'deletePlant',
  summary: 'Delete a plant',
  description: 'Deletes a plant of the calling user. When the answer arrives, this is done.',
  tags: ['plants'],
  parameters: [
    {
      name: 'id',
      in: 'path',
      description: 'Identification number of the plant: `0|-?[1-9][0-9]*`.',
      required: true,
      schema: { type: 'integer', format: 'int64' },
      example: 42,
    },
  ],
  responses: {
    204: { description: 'The plant is deleted', headers: COMMON_HEADERS },
    ...errorResponses(['id_invalid', 'scope_insufficient', 'plant_not_found', 'store_full']),
  },
}

const header = (description: string, example: string, required: boolean): OpenAPIV3.HeaderObject => ({
  description,
  required,
  schema: { type: 'string' },
  example,
})

/** A TypeBox schema is JSON Schema once its symbols are gone. */
const plain = (schema: TSchema): OpenAPIV3.SchemaObject => JSON.parse(JSON.stringify(schema))

const COMPONENTS: OpenAPIV3.ComponentsObject = {
  schemas: {
    NewPlant: { ...plain(NewPlant), example: { id: 42, ...EXAMPLE_PLANT } },
    Plant: plain(Plant),
    Error: {
      ...plain(Error),
      description: `What every error answer carries.\n\n${codeTable()}`,
      example: { error: ERRORS.plant_not_found.code, message: ERRORS.plant_not_found.message },
    },
  },
  securitySchemes: {
    bearerAuth: {
      type: 'http',
      scheme: 'bearer',
      description: 'A token that the operator made: `plantstore token create --user NAME`.',
    },
  },
  headers: {
    RequestId: header(
      `The request's id in the server's log: the client's own X-Request-Id if it is 1 to 64 of A-Z a-z 0-9 . _ - and does not contain ${TOKEN_PREFIX} in any letter case.`,
      '0c8a2a4e-2a0f-4f0e-9d55-0a3a8a1b2c3d',
      true,
    ),
    ContentTypeOptions: header('Always nosniff.', 'nosniff', true),
    CacheControl: header('no-store, or with an ETag: private, no-cache.', 'no-store', true),
    Challenge: header('What credentials are missing (RFC 6750).', 'Bearer realm="plantstore"', true),
    AcceptEncoding: header('The only Content-Encoding that a body may have; with code 41502.', 'identity', false),
    RetryAfter: header('Seconds after which to try again.', '1', true),
    ETag: header('Names a capped answer; strong.', '"5d41402abc4b2a76"', false),
    Link: header(
      'Where the list goes on, relative to its own address (RFC 8288).',
      '<?limit=20&after=42>; rel="next"',
      false,
    ),
  },
}
