import type { Database } from 'bun:sqlite'
import { AppError, type ErrorKind } from '../../../domain/error.ts'
import type { StoreEvent } from '../../engine.ts'
import { APPLICATION_ID } from '../migrate.ts'
import { plantWrites } from '../plants.ts'
import { tokenWrites } from '../tokens.ts'
import { userWrites } from '../users.ts'
import type { PlantQuota } from './quota.ts'

/**
 * All writes, by name. Each runs inside a transaction that it may share with others. A write that throws an `AppError` has
 * changed nothing.
 */
export const createWrites = (writer: Database, quota?: PlantQuota) => ({
  ...plantWrites(writer, quota),
  ...tokenWrites(writer),
  ...userWrites(writer, quota),
  /** Shows whether writing is possible. */
  rewriteApplicationId: () => void writer.run(`pragma application_id = ${APPLICATION_ID}`),
})

export type Writes = ReturnType<typeof createWrites>
export type WriteName = keyof Writes

/** What a write changes for readers. Of a write that changes `plants`, the first argument is the user. */
export const CHANGES = {
  createPlant: 'plants',
  deletePlant: 'plants',
  deletePlantsOrUser: 'everything',
  createTokens: 'tokens',
  revokeTokens: 'tokens',
  rotateToken: 'tokens',
  setUserBlock: 'tokens',
  deleteTokensOfUser: 'tokens',
  touchTokens: 'nothing',
  rewriteApplicationId: 'nothing',
} as const satisfies Record<WriteName, 'plants' | 'tokens' | 'everything' | 'nothing'>

/** A write by its name and arguments, as it is sent to the thread that writes. */
export type Call = { readonly [Name in WriteName]: readonly [Name, ...Parameters<Writes[Name]>] }[WriteName]

/** Why a group or a checkpoint failed. It is plain data, because an `AppError` does not survive the way between threads. */
export interface Failure {
  /** `bug` if the error does not come from the database. */
  readonly kind: ErrorKind
  readonly outcomeIsUnknown: boolean
  readonly reason: string
}

/** The results of the writes of a group, by their index in it. A write without an entry was done and returned nothing. */
export interface WriteResults {
  readonly refused: readonly (readonly [index: number, kind: ErrorKind, message: string])[]
  readonly returned: readonly (readonly [index: number, value: unknown])[]
}

/**
 * Either each write of a group was done or refused, durably, or the whole group failed. `done` is the usual case: every write
 * was done and returned nothing. A string travels between threads in half the time of an object.
 */
export type GroupResult = 'done' | WriteResults | { readonly failure: Failure }

/** The result of a checkpoint, if it has something to report. */
export type CheckpointReport = { readonly failure: Failure } | { readonly event: StoreEvent }

/** Makes plain data of an error. */
export function toFailure(error: unknown): Failure {
  if (!(error instanceof AppError)) return { kind: 'bug', outcomeIsUnknown: false, reason: Bun.inspect(error) }
  return { kind: error.kind, outcomeIsUnknown: error.outcomeIsUnknown, reason: String(error.cause) }
}

/** Makes an error of a failure: an `AppError`, or another error if it is a bug. */
export const toError = ({ kind, outcomeIsUnknown, reason }: Failure): Error =>
  kind === 'bug' ? new Error(reason) : new AppError(kind, { outcomeIsUnknown, cause: reason })
