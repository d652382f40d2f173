/** A user's name. Administrators use it to name the owner of tokens and plants. */
export const USER_NAME = /^[A-Za-z0-9._@-]{1,64}$/
/** The same rule in words. */
export const USER_NAME_RULE = '1 to 64 characters of A-Z a-z 0-9 . _ @ -'

/** A user, with the numbers of their plants and tokens. */
export interface User {
  readonly name: string
  readonly createdAtMs: number
  readonly plants: number
  readonly tokens: number
}
