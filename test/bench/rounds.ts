/** Something that is measured once in each round. */
export interface Contestant<T> {
  readonly name: string
  measure(): Promise<T>
}

/** The measurements of a contestant, by its name, one for each round. */
export type Measured<T> = (name: string) => readonly T[]

/**
 * Measures all contestants in each round, so that changes of the machine affect all of them. Each round begins with
 * another contestant. Tells `say` the progress.
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
