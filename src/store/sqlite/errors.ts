import { toEngineError } from '../../engine/sqlite/errors.ts'
import { fromEngine } from '../errors.ts'

/** Translates an error of SQLite or of the engine into an `AppError`. Others stay as they are. `path` is the database's file. */
export const toAppError = (error: unknown, path: string): unknown => fromEngine(toEngineError(error, path))
