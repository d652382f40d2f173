import type { TSchema } from '@sinclair/typebox'
import type { OpenAPIV3 } from 'openapi-types'
import { Error as ErrorBody } from '../../domain/error.ts'
import { NewPlant, Plant } from '../../domain/plant.ts'
import { TOKEN_PREFIX } from '../../domain/token.ts'
import { codeTable, ERRORS } from '../answers.ts'

/** The version of the interface, for which clients are made. The executable has another version. */
const INTERFACE_VERSION = '1.0.0'

/** Without `--public-url`, clients resolve every path against the address of the document. */
const SAME_ORIGIN = '/'

const DESCRIPTION =
  "Stores plants. Every operation needs a bearer token and concerns the plants of that token's user alone. A success means that the change is on disk, unless the operator has chosen that a loss of power may take the latest ones."

export const EXAMPLE_PLANT = { name: 'Monstera', tag: 'evergreen' }

/** A reference to a component of the document. */
export const ref = (kind: 'schemas' | 'headers', name: string) => ({ $ref: `#/components/${kind}/${name}` })

/** The parts of the OpenAPI document that belong to no route. */
export const documentation = (publicUrl: string | undefined) => ({
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
  components: COMPONENTS,
})

const header = (description: string, example: string, required: boolean): OpenAPIV3.HeaderObject => ({
  description,
  required,
  schema: { type: 'string' },
  example,
})

/** A TypeBox schema is JSON Schema without its symbols. */
const plain = (schema: TSchema): OpenAPIV3.SchemaObject => JSON.parse(JSON.stringify(schema))

const COMPONENTS: OpenAPIV3.ComponentsObject = {
  schemas: {
    NewPlant: {
      ...plain(NewPlant),
      description: `${NewPlant.description} Properties that NewPlant does not have are ignored.`,
      example: { id: 42, ...EXAMPLE_PLANT },
    },
    Plant: plain(Plant),
    Error: {
      ...plain(ErrorBody),
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
