import { AppError } from '../domain/error.ts'

export interface OpenOptions {
  /** Refuses a store that is not there instead of making it. */
  readonly mustExist?: boolean
}

/** Why a store cannot be opened: one line for the operator, who finds the process ended with exit code 3. */
export const unusable = (message: string, cause?: unknown): AppError =>
  new AppError('store_unusable', { message, cause })
