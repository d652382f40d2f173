import type { Answer } from './history.ts'

export { until } from './until.ts'

/** Counts the answers of loads. Goes once test/fault/postgres asks its history. */
export function countAnswers() {
  const refusals = new Map<string, number>()
  let successes = 0
  return {
    record({ status, headers, body }: Answer): void {
      if (status < 300) {
        successes++
        return
      }
      const refusal = `${status} ${JSON.parse(body).error}, Retry-After: ${headers.get('retry-after')}`
      refusals.set(refusal, (refusals.get(refusal) ?? 0) + 1)
    },
    successes: () => successes,
    refusals: (): string[] => [...refusals.keys()],
    refused: (): number => [...refusals.values()].reduce((sum, count) => sum + count, 0),
  }
}
