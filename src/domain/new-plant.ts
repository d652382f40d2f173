import { TypeCompiler } from '@sinclair/typebox/compiler'
import { AppError } from './error.ts'
import { INT64_MAX, INT64_MIN } from './int64.ts'
import { isOptional, NEW_PLANT_FIELDS, NewPlant } from './plant.ts'

const newPlant = TypeCompiler.Compile(NewPlant)

/**
 * Checks that a value of `parseJson` is a plant. It may have other properties, which no store keeps. Nothing is coerced. Throws
 * `plant_invalid`: its message names the first wrong field, or is empty if the value is not an object.
 */
export function toNewPlant(value: unknown): NewPlant {
  if (newPlant.Check(value)) return value
  const path = newPlant.Errors(value).First()?.path.slice(1)
  const field = NEW_PLANT_FIELDS.find((name) => name === path)
  throw new AppError('plant_invalid', { message: field === undefined ? '' : ruleOf(field) })
}

/** What a field must be, for a message. */
function ruleOf(field: keyof NewPlant): string {
  const rule = field === 'id' ? ID_RULE : 'a string without U+0000 and without unpaired surrogates'
  return `\`${field}\` ${isOptional(field) ? 'must be left out or be' : 'is required and must be'} ${rule}.`
}

const ID_RULE = `a whole number from ${INT64_MIN} to ${INT64_MAX}`
