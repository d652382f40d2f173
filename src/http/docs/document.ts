// Tested in test/http/openapi.test.ts.
import { swagger } from '@elysiajs/swagger'
import { type AnyElysia, Elysia } from 'elysia'
import type { OpenAPIV3 } from 'openapi-types'
import { TOKEN_PREFIX } from '../../domain/token.ts'
import { JSON_TYPE } from '../answers.ts'
import { api } from '../api.ts'
import type { AppOptions, Services } from '../options.ts'
import { ref } from './operation.ts'

/** Where the plugin serves the document within this module. */
const PATH = '/openapi.json'

/**
 * The OpenAPI document of the routes of the API, as JSON. Corrects what the plugin writes: three media types for each body, no
 * description of the body of a request, copies of models instead of references to them, and names that Elysia gave to models.
 */
export async function documentText(routes: AnyElysia, options: DocumentOptions): Promise<string> {
  const app = new Elysia().use(swagger({ specPath: PATH, documentation: documentation(options) })).use(routes)
  const response = await app.fetch(new Request(`http://localhost${PATH}`))
  const document: OpenAPIV3.Document = JSON.parse(await response.text())
  return JSON.stringify(document, (key, value) => {
    if (key === '$id') return undefined
    // A model has its name as its title.
    if (key !== value?.title && document.components?.schemas?.[value?.title]) return ref('schemas', value.title)
    if (key === 'requestBody') return { description: 'The plant to store.', ...value }
    return value?.['multipart/form-data'] ? { [JSON_TYPE]: value[JSON_TYPE] } : value
  })
}

interface DocumentOptions extends Pick<AppOptions, 'page' | 'provider'> {
  readonly publicUrl?: string | undefined
}

/** The OpenAPI document that a server with this public URL serves, made without a server. */
export const openApiDocument = async (publicUrl: string | undefined): Promise<OpenAPIV3.Document> =>
  // No request comes to these routes: they only describe themselves.
  JSON.parse(await documentText(api({} as Services), { publicUrl, page: true, provider: undefined }))

/** The version of the interface, for which clients are made. The executable has another version. */
const INTERFACE_VERSION = '1.0.0'

const DESCRIPTION =
  'Stores plants. Every operation needs a bearer token and concerns only that token, or the plants of its user. A success means that the change is on disk, unless the operator has chosen that a loss of power may take the latest ones.'

/** Without `--public-url` the link is relative to /docs, so that it also leads to the page behind a prefix. */
const pageLink = (publicUrl = '.') =>
  `In a browser, users see and tend their plants on [the page at \`/\`](${publicUrl}/).`

/** The parts of the OpenAPI document that belong to no route. */
const documentation = ({ publicUrl, page, provider }: DocumentOptions) => ({
  info: {
    title: 'Plant Store',
    version: INTERFACE_VERSION,
    description: page ? `${DESCRIPTION} ${pageLink(publicUrl)}` : DESCRIPTION,
    license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    contact: { name: 'The operator of this server' },
  },
  // Without `--public-url`, clients resolve every path against the address of the document.
  servers: [{ url: publicUrl ?? '/' }],
  security: [{ bearerAuth: [] }, ...(provider === undefined ? [] : [{ openIdConnect: [] }])],
  tags: [
    { name: 'plants', description: 'The plants of the calling user' },
    { name: 'token', description: 'The token of the request' },
  ],
  components: {
    headers: HEADERS,
    securitySchemes: {
      bearerAuth: {
        type: 'http',
        scheme: 'bearer',
        description: 'A token that the operator made: `plantstore token create --user NAME`.',
      },
      ...(provider !== undefined && {
        openIdConnect: {
          type: 'openIdConnect' as const,
          openIdConnectUrl: `${provider.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
          description:
            'A JWT of the identity provider with the scope `plants:write`, or `plants:read` for reads alone.',
        },
      }),
    } as const,
  },
})

const header = (required: boolean, description: string, example: string): OpenAPIV3.HeaderObject => ({
  description,
  required,
  schema: { type: 'string' },
  example,
})

const HEADERS = {
  'X-Request-Id': header(
    true,
    `The id of the request in the log of the server. The server keeps the id of the client if it has 1 to 64 of \`A-Z a-z 0-9 . _ -\` and does not contain ${TOKEN_PREFIX} in any letter case.`,
    '0c8a2a4e-2a0f-4f0e-9d55-0a3a8a1b2c3d',
  ),
  'X-Content-Type-Options': header(true, 'Always nosniff.', 'nosniff'),
  'Cache-Control': header(true, 'no-store, or with an ETag: private, no-cache.', 'no-store'),
  'WWW-Authenticate': header(
    false,
    'Why the credentials do not suffice (RFC 6750). Every 401 has it, and 403 with code 40301.',
    'Bearer realm="plantstore"',
  ),
  'Accept-Encoding': header(false, 'The only Content-Encoding that a body may have; with code 41502.', 'identity'),
  'Retry-After': header(true, 'Seconds after which to try again.', '1'),
  ETag: header(false, 'The strong entity tag of a plant or of a capped list.', '"5d41402abc4b2a76"'),
  Link: header(
    false,
    'The next page of the list, relative to the address of this page (RFC 8288).',
    '<?limit=20&after=42>; rel="next"',
  ),
}
