import { Kind, type Static, Type, TypeRegistry } from '@sinclair/typebox'
import { isInt64 } from './int64.ts'

/**
 * Text that every store keeps faithfully: without U+0000 and without unpaired surrogates. The published pattern says the
 * first. It holds the character itself, which JSON writes as \u0000: Go and PHP refuse that escape inside a pattern. No
 * pattern says the second in Go, Ruby or PHP, so the description of `NewPlant` does. The check does not run the pattern:
 * two built-ins are faster on megabytes of text.
 */
const NO_NUL = '^[^\u0000]*$'
TypeRegistry.Set('Text', (_, value) => typeof value === 'string' && value.isWellFormed() && !value.includes('\0'))
TypeRegistry.Set('Int64', (_, value) => typeof value === 'bigint' && isInt64(value))

const Text = (description: string, example: string) =>
  Type.Unsafe<string>({ [Kind]: 'Text', type: 'string', pattern: NO_NUL, description, example })

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
    description: 'A plant as it is sent. `name` and `tag` must hold neither U+0000 nor an unpaired surrogate.',
  },
)
export type NewPlant = Static<typeof NewPlant>

/** The part of a plant that is returned. Its `id` is in no response body. */
export const toPlant = ({ name, tag }: Plant): Plant => (tag === undefined ? { name } : { name, tag })
