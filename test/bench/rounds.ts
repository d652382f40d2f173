/** Something that is measured once in each round. */
export interface Contestant<T> {
  readonly name: string
  measure(): Promise<T>
}

/** What was measured of each contestant, by its name, round by round. */
export type Measured<T> = (name: string) => readonly T[]

/**
 * Measures all contestants in each round, so that whatever changes on the machine meets all of them. Each round begins
 * with another one. `say` is told what is being measured.
 */
export async function interleave<T>(
  contestants: readonly Contestant<T>[],
  rounds: number,
  say: (text: string) => void,
): Promise<Measured<T>> {
  const measured = new Map<string, T[]>(contestants.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const { name, measure } of rotated(contestants, round)) {
      say(`round ${round + 1} of ${rounds}: ${name}`)
      measured.get(name)?.push(await measure())
    }
  }
  return (name) => measured.get(name) ?? []
}

const rotated = <T>(items: readonly T[], by: number): readonly T[] => {
  const start = by % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}
