/**
 * Work that goes on beside a test. The test sees its rejection when it awaits the work. Without this, Bun would report the requests
 * that the end of a failed test cuts off, instead of the reason why it failed.
 */
export function inBackground<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const all = Promise.all(work)
  all.catch(() => undefined)
  return all
}
