import { Kind, type Static, Type, TypeRegistry } from '@sinclair/typebox'
import { isInt64 } from './int64.ts'

/**
 * Text that every store keeps faithfully holds no U+0000 and no unpaired surrogate. The first pattern is one that every
 * dialect takes. The second is in the dialect that OpenAPI 3.0 names (ECMA-262 5.1), and means the same with the `u` flag;
 * dialects without surrogates (Go, Rust) do not compile it, and drop it alone. The check runs neither, because
 * JavaScriptCore answers such expressions wrongly or slowly on megabytes of text, where two built-ins answer at once.
 */
const NO_NUL = '^[^\\x00]*$'
const NO_UNPAIRED_SURROGATE = '^[^\\uD800-\\uDFFF]*(?:[\\uD800-\\uDBFF][\\uDC00-\\uDFFF][^\\uD800-\\uDFFF]*)*$'
TypeRegistry.Set('Text', (_, value) => typeof value === 'string' && value.isWellFormed() && !value.includes('\0'))
TypeRegistry.Set('Int64', (_, value) => typeof value === 'bigint' && isInt64(value))

const Text = (description: string, example: string) =>
  Type.Unsafe<string>({
    [Kind]: 'Text',
    type: 'string',
    pattern: NO_NUL,
    allOf: [{ type: 'string', pattern: NO_UNPAIRED_SURROGATE }],
    description,
    example,
  })

const Int64 = (description: string, example: number) =>
  Type.Unsafe<bigint>({ [Kind]: 'Int64', type: 'integer', format: 'int64', description, example })

const plantProperties = {
  name: Text('The name of the plant', 'Monstera'),
  tag: Type.Optional(Text('Tag that specifies the type of plant', 'evergreen')),
}

/** What a client is told of a plant. A plant without a tag has no `tag`, never `null`. */
export const Plant = Type.Object(plantProperties, { title: 'Plant', description: 'A plant as it is returned.' })
export type Plant = Static<typeof Plant>

/** What a client sends to create a plant. `id` is exact over the whole int64 range, hence a bigint. */
export const NewPlant = Type.Object(
  { id: Int64('Identification number of the plant', 42), ...plantProperties },
  {
    title: 'NewPlant',
    description: 'A plant as it is sent. Its texts hold neither U+0000 nor unpaired surrogates.',
  },
)
export type NewPlant = Static<typeof NewPlant>

/** The part of a plant that is returned. Its `id` is in no response body. */
export const toPlant = ({ name, tag }: Plant): Plant => (tag === undefined ? { name } : { name, tag })
