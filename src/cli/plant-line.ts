import { escapeControlsInLines } from '../controls.ts'
import { AppError } from '../domain/error.ts'
import { describeFields, NEW_PLANT_FIELDS, toPlant } from '../domain/plant.ts'
import type { OwnedPlant } from '../domain/transfer.ts'
import { USER_NAME, USER_NAME_RULE } from '../domain/user.ts'
import { checkNewPlant, decode, readFields } from '../http/new-plant.ts'

/** The largest line of an import: the largest body that a server can be told to take, and the name of a user. */
export const LINE_MAX_BYTES = 1024 ** 3 + 1024

const LINE_FIELDS = [...NEW_PLANT_FIELDS, 'user'] as const

/** Plants as lines of JSON (https://jsonlines.org): `NewPlant` with the name of its user. */
export const renderPlantLines = (plants: readonly OwnedPlant[]): string =>
  escapeControlsInLines(plants.map(renderPlantLine).join(''))

/** `JSON.stringify` takes no bigint. */
const renderPlantLine = (plant: OwnedPlant): string =>
  `{"user":${JSON.stringify(plant.user)},"id":${plant.id},${JSON.stringify(toPlant(plant)).slice(1)}\n`

/**
 * Reads such a line as strictly as a server reads the body of a create. A line that names no user is `defaultUser`'s, and
 * nobody's else. Throws a sentence that says what is wrong.
 */
export function parsePlantLine(line: Uint8Array, defaultUser: string | undefined): OwnedPlant {
  const fields = readFields(decode(line), LINE_FIELDS)
  const plant = checkNewPlant(fields)
  const user = fields.user ?? defaultUser
  if (user === undefined) throw invalid('`user` is missing: every line has one, or --user says whose plants these are.')
  if (typeof user !== 'string' || !USER_NAME.test(user)) throw invalid(`\`user\` must be ${USER_NAME_RULE}.`)
  if (defaultUser !== undefined && user !== defaultUser)
    throw invalid(`this is a plant of ${user}, not of ${defaultUser}.`)
  return { user, ...plant }
}

/** Why a line was refused, for the person who has it. */
export function refusalOf(error: unknown): string {
  if (!(error instanceof AppError)) throw error
  if (error.kind === 'body_not_json') return 'it is no JSON in UTF-8 without a BOM, or is nested too deep.'
  return error.message === '' ? `it must be a JSON object with ${describeFields(['user'])}.` : error.message
}

const invalid = (message: string) => new AppError('plant_invalid', { message })
