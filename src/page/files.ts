// Tested in test/http/socket/page-upload.test.ts.
import type { WebFile } from '../formats/plant-file.ts'
import { Refusal } from './client.ts'
import { FIELD_NAMES, type Plant } from './fields.ts'
import { toJson } from './plants.ts'

/** How long a browser may take to open a file. */
const OPENS_MS = 60_000

/** Loads what reads files and writes CSV. */
export const loadWebFile = (): Promise<WebFile> =>
  import(document.querySelector<HTMLLinkElement>('link[rel=module]')?.href ?? '').catch(() => {
    throw new Refusal(0, 'The part of this page that reads and writes files cannot be loaded: load the page again.')
  })

/** How plants become a file: CSV as the spreadsheets of this browser's country take it, or JSON Lines. */
export async function formatOf(kind: string) {
  const toLines = (plants: readonly Plant[]) => plants.map((plant) => `${toJson(plant)}\n`).join('')
  if (kind === 'jsonl') return { header: '', toText: toLines }
  const { toCsv } = await loadWebFile()
  const toText = (plants: readonly Plant[]) =>
    toCsv(plants, FIELD_NAMES, (1.5).toLocaleString().includes(',') ? ';' : ',')
  // Excel reads UTF-8 only with a BOM.
  return { header: `\ufeff${toText([Object.fromEntries(FIELD_NAMES.map((name) => [name, name])) as Plant])}`, toText }
}

/** Lets the browser store a file. */
export function save(download: string, parts: BlobPart[]): void {
  const href = URL.createObjectURL(new Blob(parts))
  Object.assign(document.createElement('a'), { href, download }).click()
  setTimeout(() => URL.revokeObjectURL(href), OPENS_MS)
}
