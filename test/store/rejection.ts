/**
 * The reason with which a promise rejects; fails if it resolves. For answers of a thread: Bun's `rejects` runs the
 * event loop inside itself, where messages of threads do not wake it (https://github.com/oven-sh/bun/issues/37189).
 */
export const rejectionOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => {
      throw new Error(`it resolved to ${Bun.inspect(value)}`)
    },
    (reason) => reason,
  )
