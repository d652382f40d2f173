/** Resolves in the next turn of the event loop: other requests and signals are handled before. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
