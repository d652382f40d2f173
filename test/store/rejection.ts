/** All that an error says. */
type Rejection = Readonly<Record<string, unknown>>

/**
 * The reason with which a promise rejects, as an object; fails if it resolves. For answers of a thread: Bun's `rejects` runs the
 * event loop inside itself, where messages of threads do not wake it (https://github.com/oven-sh/bun/issues/37189).
 */
export const rejectionOf = (promise: Promise<unknown>): Promise<Rejection> =>
  promise.then((value) => {
    throw new Error(`it resolved to ${Bun.inspect(value)}`)
  }, asObject)

/** Of an error as it is, Bun prints the message alone where another one was expected. */
export const asObject = (reason: unknown): Rejection =>
  reason instanceof Error ? { ...reason, message: reason.message, cause: reason.cause } : { reason }
