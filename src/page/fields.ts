// Tested in test/http/socket/page.test.ts.
import type { PlantTexts } from '../formats/plant-file.ts'

export type Plant = PlantTexts

/** The fields of a plant in the order of columns and inputs. The server writes them into the page, optional ones with a `?`. */
export const FIELDS = (document.querySelector<HTMLMetaElement>('meta[name=fields]')?.content ?? '')
  .split(' ')
  .map((field) => ({ name: field.replace('?', ''), isOptional: field.endsWith('?') }))

export const FIELD_NAMES = FIELDS.map(({ name }) => name)

export const titleOf = (field: string): string => field.charAt(0).toUpperCase() + field.slice(1)
