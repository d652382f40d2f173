// Tested in test/http/page/page-upload.test.ts.
import type { FileLine, WebFile } from '../formats/plant-file.ts'
import { Refusal, refusalIn } from './client.ts'
import { countOf, quoted } from './messages.ts'
import { focus } from './parts.tsx'
import { ALL_LIMIT, listPlants, toJson } from './plants.ts'
import { FIELD_NAMES, FIELDS, type Plant } from './rows.ts'
import { set, state } from './state.ts'

/** How long a browser may take to open a file. */
const OPENS_MS = 60_000

/** Loads what reads files and writes CSV. */
const loadWebFile = (): Promise<WebFile> =>
  import(document.querySelector<HTMLLinkElement>('link[rel=module]')?.href ?? '').catch(() => {
    throw new Refusal(0, 'The part of this page that reads and writes files cannot be loaded: load the page again.')
  })

/** How plants become a file: CSV as the spreadsheets of this browser's country take it, or JSON Lines. */
async function formatOf(kind: string) {
  const toLines = (plants: readonly Plant[]) => plants.map((plant) => `${toJson(plant)}\n`).join('')
  if (kind === 'jsonl') return { header: '', toText: toLines }
  const { toCsv } = await loadWebFile()
  const delimiter = (1.5).toLocaleString().includes(',') ? ';' : ','
  const toText = (plants: readonly Plant[]) => toCsv(plants, FIELD_NAMES, delimiter)
  // Excel reads UTF-8 only with a BOM.
  return { header: `\ufeff${FIELD_NAMES.join(delimiter)}\n`, toText }
}

/** Lets the browser store a file. */
export function save(download: string, parts: BlobPart[]): void {
  const href = URL.createObjectURL(new Blob(parts))
  Object.assign(document.createElement('a'), { href, download }).click()
  setTimeout(() => URL.revokeObjectURL(href), OPENS_MS)
}

/** Lets the browser store all plants. It keeps the parts of a blob outside of the memory of the page. */
export async function download(kind: string): Promise<void> {
  document.querySelector('.tools details')?.removeAttribute('open')
  focus('.tools summary')
  state.job?.stop()
  let isStopped = false
  const stop = () => {
    isStopped = true
    set({ job: undefined })
  }
  try {
    const { header, toText } = await formatOf(kind)
    const parts = [new Blob([header])]
    let [count, after] = [0, '']
    do {
      set({ job: { text: `Downloaded ${countOf(count)} so far.`, stop } })
      const { plants, end } = await listPlants(ALL_LIMIT, after)
      if (isStopped) return
      count += plants.length
      parts.push(new Blob([toText(plants)]))
      after = end
    } while (after !== '')
    save(`plants.${kind}`, parts)
    set({ job: undefined, total: count, notice: `Downloaded ${countOf(count)}.` })
  } catch (error) {
    const notice = refusalIn(error).message
    if (!isStopped) set({ job: undefined, notice })
  }
}

export type Refused = Readonly<{ line: FileLine; why: string }>

/** A plant of a file that is not stored as it is there, and the stored one with its id. */
export type Difference = Readonly<{ line: FileLine; plant: Plant; stored?: Plant }>

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
  const count = found.size
  // In CSV an empty text and none are one.
  const textOf = (plant: Plant, name: string) => (form.header ? plant[name] || undefined : plant[name])
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
  return { differences, changes, equal: count - found.size, header: form.header }
}
