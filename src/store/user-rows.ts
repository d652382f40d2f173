import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { User } from '../domain/user.ts'

/** A user with the numbers of plants and tokens, as every database returns it. */
export type UserRow = [name: string, createdAtMs: bigint, plants: bigint, tokens: bigint]

/** The part of a store that is about users. */
export type UserMethods = Pick<Store, 'listUsers' | 'deleteUser'>

/** The user of a row. */
export const toUser = ([name, createdAtMs, plants, tokens]: UserRow): User => ({
  name,
  createdAtMs: Number(createdAtMs),
  plants: Number(plants),
  tokens: Number(tokens),
})

/** The error of a command for a user who does not exist. */
export const userNotFound = (name: string): AppError =>
  new AppError('user_not_found', { message: `There is no user ${name}.` })
