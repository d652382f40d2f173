// Tested in test/http/transcripts/lists.txt.
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { parseInt64Decimal } from '../domain/int64.ts'
import { LIMIT_MAX } from '../domain/store.ts'
import { AppError } from '../error.ts'
import { type Include, LIST_MAX_BYTES } from './lists/render-list.ts'

const LIMIT = /^(?:0|[1-9][0-9]{0,9})$/
const INCLUDE = Type.Optional(
  Type.Unsafe<Include>({
    type: 'string',
    enum: ['id'],
    description: '`id`: each plant of the answer has its id, too.',
  }),
)

/** The query of a list. Rejects with `query_invalid`; other parameters are ignored. */
export const ListQuery = checkedBy(
  Type.Object({
    limit: Type.Optional(
      Type.Unsafe<number | undefined>({
        type: 'integer',
        format: 'int32',
        minimum: 0,
        maximum: LIMIT_MAX,
        description: `The maximum number of results: only digits, no leading zero, given once. The operator may allow fewer. The answer also ends before the plant that would make its body longer than ${LIST_MAX_BYTES / 1024 ** 2} MiB, but holds at least one plant; then \`Link\` leads on.`,
        example: 20,
      }),
    ),
    after: Type.Optional(
      Type.Unsafe<bigint | undefined>({
        type: 'integer',
        format: 'int64',
        description: 'Only plants with a larger id than this are listed. `Link` carries it.',
      }),
    ),
    include: INCLUDE,
  }),
  ({ limit, after, include }) => ({
    limit: parse('limit', limit, parseLimit, `a whole decimal number from 0 to ${LIMIT_MAX}`),
    after: parse('after', after, parseInt64Decimal, 'the id of a plant as a decimal int64'),
    include: parseInclude(include),
  }),
)
export type ListQuery = Static<typeof ListQuery>

export const PlantQuery = checkedBy(Type.Object({ include: INCLUDE }), ({ include }) => ({
  include: parseInclude(include),
}))

/** The parameters of the path of a plant. Rejects with `id_invalid`. */
export const PlantPath = checkedBy(
  Type.Object({
    id: Type.Unsafe<bigint>({
      type: 'integer',
      format: 'int64',
      description: 'Identification number of the plant: `0|-?[1-9][0-9]*`.',
      example: 42,
    }),
  }),
  ({ id }) => {
    // Elysia gives null for a broken percent-encoding.
    const parsed = typeof id === 'string' ? parseInt64Decimal(id) : undefined
    if (parsed === undefined) throw new AppError('id_invalid')
    return { id: parsed }
  },
)

const ENTITY_TAGS = Type.Optional(
  Type.Unsafe<string | undefined>({
    type: 'string',
    description: 'An `ETag` of an earlier answer, a list of them, or `*`.',
  }),
)

/** The precondition of a read. Any value is allowed: text that is no `ETag` matches none. */
export const IfNoneMatch = checkedBy(Type.Object({ 'If-None-Match': ENTITY_TAGS }))

export const Preconditions = checkedBy(Type.Object({ 'If-Match': ENTITY_TAGS, 'If-None-Match': ENTITY_TAGS }))

const parseInclude = (given: unknown): Include =>
  parse('include', given, (text) => (text === 'id' ? text : undefined), 'id')

function parseLimit(text: string): number | undefined {
  const limit = LIMIT.test(text) ? Number(text) : undefined
  return limit !== undefined && limit <= LIMIT_MAX ? limit : undefined
}

/** Elysia gives a string for a parameter, an array if it is repeated, and other values where it parsed JSON. */
function parse<T>(name: string, given: unknown, parseText: (text: string) => T | undefined, rule: string) {
  if (given === undefined) return undefined
  const value = typeof given === 'string' ? parseText(given) : undefined
  if (value === undefined) throw new AppError('query_invalid', { message: `\`${name}\` must be ${rule}, given once.` })
  return value
}

/**
 * Has Elysia check the values of a query or a path with `check`, while the schema describes them to TypeScript and to the
 * OpenAPI document. Elysia's own check would coerce (`0x10`, ` 5`), take the last of repeated values, and echo what was sent. It
 * prefers Standard Schema (https://standardschema.dev), and what `check` throws reaches `onError` as it is. The property
 * is not enumerable, so that the document does not show it.
 */
function checkedBy<Schema extends TSchema>(
  schema: Schema,
  check: (values: Readonly<Record<string, unknown>>) => Static<Schema> = (values) => values,
): Schema {
  const validate = (values: unknown) => ({ value: check(values as Readonly<Record<string, unknown>>) })
  return Object.defineProperty(schema, '~standard', { value: { version: 1, vendor: 'plantstore', validate } })
}
