// Tested in test/http/socket/page-upload.test.ts.
import type { WebFile } from '../formats/plant-file.ts'
import { Refusal, refusalIn } from './client.ts'
import { FIELD_NAMES, type Plant } from './fields.ts'
import { countOf } from './messages.ts'
import { focus } from './parts.tsx'
import { ALL_LIMIT, listPlants, toJson } from './plants.ts'
import { set, state } from './state.ts'

/** How long a browser may take to open a file. */
const OPENS_MS = 60_000

/** Loads what reads files and writes CSV. */
export const loadWebFile = (): Promise<WebFile> =>
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
