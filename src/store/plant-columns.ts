import { PLANT_FIELDS } from '../domain/plant.ts'

/** The columns of the table `plants`, in every store: the key, and one for each field. */
export const PLANT_KEY = ['user_id', 'id'] as const
export const PLANT_COLUMNS: readonly string[] = [...PLANT_KEY, ...PLANT_FIELDS]
/** The columns of the fields, in SQL. */
export const FIELD_COLUMNS = PLANT_FIELDS.join(', ')
