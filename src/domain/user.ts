/** A user's name: what administrators call the owner of tokens and plants. */
export const USER_NAME = /^[A-Za-z0-9._@-]{1,64}$/
/** The same for a person to read. */
export const USER_NAME_RULE = '1 to 64 characters of A-Z a-z 0-9 . _ @ -'

/** A user with what belongs to them. */
export interface User {
  readonly name: string
  readonly createdAtMs: number
  readonly plants: number
  readonly tokens: number
}
