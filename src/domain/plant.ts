import { Kind, type Static, type TProperties, Type, TypeRegistry } from '@sinclair/typebox'
import { INT64_RULE } from './int64.ts'

/**
 * Text that every store keeps faithfully: without U+0000 and without unpaired surrogates. The published pattern says the
 * first, with an escape: generators would write the character itself into source files, and Go and PHP refuse \u0000 in a
 * pattern. No pattern says the second in Go, Ruby or PHP, so the description of `NewPlant` does. The check does not run the
 * pattern: two built-ins are faster on megabytes of text.
 */
const NO_NUL = String.raw`^[^\x00]*$`
TypeRegistry.Set('Text', (_, value) => typeof value === 'string' && value.isWellFormed() && !value.includes('\0'))
TypeRegistry.Set('Int64', (_, value) => typeof value === 'bigint' && value === BigInt.asIntN(64, value))

const Text = (description: string, example: string) =>
  Type.Unsafe<string>({ [Kind]: 'Text', type: 'string', pattern: NO_NUL, description, example })

const Id = (about: string) =>
  Type.Unsafe<bigint>({
    [Kind]: 'Int64',
    type: 'integer',
    format: 'int64',
    description: `Identification number of the plant. ${about} Beyond 2^53 a double rounds it: use an integer of 64 bits.`,
    example: 42,
  })

/** Names for a message, like `name` and `tag`. */
const enumerate = (names: readonly string[]): string => `\`${names.join('`, `')}\``.replace(/, ([^,]+)$/, ' and $1')

const plantProperties = {
  name: Text('The name of the plant', 'Monstera'),
  tag: Type.Optional(Text('Tag that specifies the type of plant', 'evergreen')),
}

export const FIELDS_IN_WORDS = enumerate(Object.keys(plantProperties))
const TEXT_RULE = `${FIELDS_IN_WORDS} must hold neither U+0000 nor an unpaired surrogate.`

const exampleOf = (properties: TProperties) =>
  Object.fromEntries(Object.entries(properties).map(([name, { example }]) => [name, example]))

/**
 * What a client is told of a plant. A plant without a tag has no `tag`, never `null`. Both databases have a column of the same
 * name for each field. All other lists of the fields derive from this schema: statements, exports, imports and copies.
 */
export const Plant = Type.Object(plantProperties, {
  title: 'Plant',
  description: `A plant as it is returned, and as a put takes it. ${TEXT_RULE} A put may also have the \`id\` of its path. Other properties are ignored.`,
  example: exampleOf(plantProperties),
})
export type Plant = Static<typeof Plant>

/** A plant as it is listed. Its `id` is there if the client asks for it. */
export const ListedPlant = Type.Intersect(
  [Plant, Type.Object({ id: Type.Optional(Id('It is there with `include=id`.')) })],
  {
    title: 'ListedPlant',
    description: 'A plant as it is read, with its id if the query asks for it.',
    example: Plant.example,
  },
)

/** The fields of a plant, in the order in which they are stored and sent. */
export const PLANT_FIELDS = Object.keys(Plant.properties) as readonly (keyof Plant)[]

const newPlantProperties = { id: Id(`The client chooses it: ${INT64_RULE}.`), ...plantProperties }

/** What a client sends to create a plant. `id` is exact over the whole int64 range, hence a bigint. */
export const NewPlant = Type.Object(newPlantProperties, {
  title: 'NewPlant',
  description: `A plant as it is sent. ${TEXT_RULE} Properties that NewPlant does not have are ignored.`,
  example: exampleOf(newPlantProperties),
})
export type NewPlant = Static<typeof NewPlant>

/** A plant with its identifier, as a store holds it. */
export interface StoredPlant {
  readonly id: bigint
  readonly plant: Plant
}

/** A plant with the name of its user: a line of an export. */
export interface OwnedPlant extends StoredPlant {
  readonly user: string
}

/** If a user already has the id of a plant, an import imports nothing, skips the plant, or replaces the stored one. */
export const CONFLICT_RULES = ['fail', 'skip', 'replace'] as const
export type ConflictRule = (typeof CONFLICT_RULES)[number]

/** The fields that a client sends. */
export const NEW_PLANT_FIELDS = Object.keys(NewPlant.properties) as readonly (keyof NewPlant)[]

export const isOptional = (field: keyof NewPlant): boolean => !REQUIRED.includes(field)
const REQUIRED: readonly string[] = NewPlant.required ?? []

/** Text for a message, like: `id` and `name`, and optionally `tag`. `others` are further required fields. */
export const describeFields = (others: readonly string[] = []): string =>
  `${enumerate([...others, ...REQUIRED])}, and optionally ${enumerate(NEW_PLANT_FIELDS.filter(isOptional))}`

/** The values of `PLANT_FIELDS`, in the same order. A field that is missing is `null`. */
export type PlantValues = readonly (string | null)[]

/** A plant, or a row with a column for each of its fields. */
export type PlantRow = Readonly<Partial<Record<keyof Plant, string | null>>>

export function valuesOf(row: PlantRow): PlantValues {
  const values: (string | null)[] = []
  for (const field of PLANT_FIELDS) values.push(row[field] ?? null)
  return values
}

/** The plant in a row or in an object with other properties, without the fields that are missing or `null`. */
export function toPlant(row: PlantRow): Plant {
  const plant: Partial<Record<keyof Plant, string>> = {}
  for (const field of PLANT_FIELDS) {
    const value = row[field]
    if (value !== null && value !== undefined) plant[field] = value
  }
  // The columns of required fields are `not null`.
  return plant as Plant
}

/** The JSON of a plant, with its `id` if one is given, exact at every digit. */
export function plantJson(plant: Plant, id?: bigint): string {
  const json = JSON.stringify(plant)
  return id === undefined ? json : `{"id":${id},${json.slice(1)}`
}
