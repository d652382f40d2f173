// Tested in test/http/socket/page-upload.test.ts.
import type { FileLine } from '../formats/plant-file.ts'
import { Refusal } from './client.ts'
import { FIELD_NAMES, FIELDS, type Plant } from './fields.ts'
import { loadWebFile } from './files.ts'
import { quoted } from './messages.ts'
import { ALL_LIMIT, listPlants } from './plants.ts'

export interface Refused {
  readonly line: FileLine
  readonly why: string
}

/** A plant of a file that is not stored as it is there, and the stored one with its id. */
export interface Difference {
  readonly line: FileLine
  readonly plant: Plant
  readonly stored?: Plant
}

export type Comparison = Awaited<ReturnType<typeof compare>>

/** Compares the plants of a file with the stored ones. Adds the lines that it refuses. `turn` rejects to stop it. */
export async function compare(file: File, refused: Refused[], turn: (bytes: number) => Promise<void>) {
  const found = new Map<string, Difference>()
  const { readWebFile } = await loadWebFile()
  const { form, plants } = readWebFile(file, FIELDS)
  let bytes = 0
  for await (const { line, plant } of plants) {
    const first = typeof plant !== 'string' && found.get(plant.id)
    if (typeof plant === 'string') refused.push({ line, why: quoted(plant) })
    else if (first) refused.push({ line, why: `its id is that of line ${first.line.number}.` })
    else found.set(plant.id, { line, plant })
    bytes += line.bytes
    await turn(bytes)
  }
  if (form.problem) throw new Refusal(0, form.problem)
  const { header } = form
  const count = found.size
  // In CSV an empty text and none are one.
  const textOf = (plant: Plant, name: string) => (header ? plant[name] || undefined : plant[name])
  let after: string | undefined = ''
  while (after !== undefined && found.size > 0) {
    const { plants, end } = await listPlants(ALL_LIMIT, after)
    for (const stored of plants) {
      const difference = found.get(stored.id)
      if (difference === undefined) continue
      const isEqual = FIELD_NAMES.every((name) => textOf(difference.plant, name) === textOf(stored, name))
      if (isEqual) found.delete(stored.id)
      else found.set(stored.id, { ...difference, stored })
    }
    after = end || undefined
    await turn(bytes)
  }
  const differences = [...found.values()]
  const changes = differences.filter(({ stored }) => stored)
  return { differences, changes, equal: count - found.size, header }
}
