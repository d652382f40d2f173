import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type Caller, SCOPES, type Scope } from '../domain/token.ts'
import { respond } from './answers.ts'
import { authentication } from './authentication.ts'
import { operation } from './docs/operation.ts'
import type { Services } from './options.ts'

/** The token of a request: whose it is, what it may do, and until when. It says nothing of other tokens. */
export const token = (services: Services) =>
  new Elysia({ name: 'token' })
    .model({ Token: { ...TokenBody } })
    .use(authentication(services))
    .get('/token', ({ caller, scope }) => respond(JSON.stringify(toBody(caller, scope))), GET)

/** The first time whose year has more than the four digits of RFC 3339, in milliseconds since 1970-01-01 UTC. */
const YEAR_10000_MS = Date.UTC(10_000, 0)

function toBody({ subject, userName, ...token }: Caller, scope: Scope): TokenBody {
  const endsAtMs = token.claimedExpiresAtMs ?? token.expiresAtMs ?? YEAR_10000_MS
  const end = endsAtMs < YEAR_10000_MS && { expires: new Date(Math.floor(endsAtMs)).toISOString() }
  return { user: subject ?? userName, scope, ...end }
}

/** The body of an answer, and the component `Token` of the OpenAPI document. */
const TokenBody = Type.Object(
  {
    user: Type.String({ description: 'The name of the user. Of a JWT it is the claim `sub`.', example: 'alice' }),
    scope: Type.Unsafe<Scope>({
      type: 'string',
      enum: [...SCOPES],
      description: '`read`: the token may list and get. `write`: it may do everything.',
      example: 'read',
    }),
    expires: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'When the token ends, in UTC with milliseconds. It is missing if the token has no end, or one after the year 9999. Of a JWT it is the claim `exp`.',
        example: '2027-01-31T12:00:00.000Z',
      }),
    ),
  },
  {
    title: 'Token',
    description: 'A token, without its text.',
    example: { user: 'alice', scope: 'read', expires: '2027-01-31T12:00:00.000Z' },
  },
)
type TokenBody = Static<typeof TokenBody>

const GET = operation({
  operationId: 'getToken',
  tag: 'token',
  summary: 'Get the token',
  description:
    'The user, the scope and the end of the token that the request carries. A JWT is accepted for up to 60 seconds after its end, because clocks differ. Preconditions are not evaluated.',
  successes: { 200: { description: 'The token', body: TokenBody } },
  errors: [],
})
