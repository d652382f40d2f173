// Tested in test/http/socket/page-tools.test.ts.
import { useEffect, useRef, useState } from 'preact/hooks'
import { type CsvReader, describeFile, type FileLine, type PlantLine, plantLines } from '../formats/plant-file.ts'
import { CODES, isPassing, parse } from './answer.ts'
import { Refusal, refusalIn } from './client.ts'
import { FIELDS } from './fields.ts'
import { countOf } from './messages.ts'
import { closeUpload } from './panel.ts'
import { Button, focusElement } from './parts.tsx'
import { createFrom, saidOf } from './plants.ts'
import { set, shownWith, state } from './state.ts'

/** The page shows the results of so many lines. After them it shows only those of refused lines, and as many. */
const RESULTS_MAX = 500
/** The longest line, as for `import`. */
const LINE_MAX = 385 * 1024
const TOO_LONG = `it is longer than ${LINE_MAX} bytes, so nothing behind it was read.`

/** How far an upload is. `there` counts plants that were stored before with the same values. */
interface Progress extends Readonly<Record<'added' | 'there' | 'refused', number>> {
  readonly how: '' | 'Adding' | 'Done' | 'Stopped'
  readonly results: readonly string[]
}

const NOTHING: Progress = { how: '', added: 0, there: 0, refused: 0, results: [] }

/** Adds the plants of a file, and shows what came of each line. */
export function Upload() {
  const [{ how, added, there, refused, results }, setProgress] = useState(NOTHING)
  const running = useRef(new AbortController())
  useEffect(() => () => running.current.abort(), [])

  const upload = async (file: File) => {
    const job = new AbortController()
    running.current = job
    set({ upload: 'running', notice: '' })
    let now = NOTHING
    const show = (change: Partial<Progress>) => {
      now = { ...now, ...change }
      setProgress(now)
    }
    show({ how: 'Adding' })
    const end = await eachLine(file, job, async (line) => {
      const { number, text, json = text, problem } = line
      const plant = parse(json) ?? {}
      const done = problem ? new Refusal(0, problem) : await createFrom(json, plant).catch(refusalIn)
      const isRefused = done instanceof Refusal && done.code !== CODES.unknown
      const kind = isRefused && now.refused === 0 ? kindOf(line) : undefined
      const told = kind ?? (done instanceof Refusal ? done.message : `${done}.`)
      const isShown = now.results.length < RESULTS_MAX * (isRefused ? 2 : 1)
      show({
        added: now.added + Number(done === 'added'),
        there: now.there + Number(done === 'already there'),
        refused: now.refused + Number(isRefused),
        results: isShown ? [...now.results, `Line ${number}: ${told}`] : now.results,
      })
      set(shownWith(saidOf(new Set([`${plant.id}`]))))
      // Nobody has refused it: the user has given it up.
      if (done instanceof Refusal && (done.code < 0 || isPassing(done.code))) job.abort()
    })
    show({ how: job.signal.aborted ? 'Stopped' : 'Done' })
    set({ upload: 'open', notice: `Added ${countOf(now.added)}: ${end}.`, changes: state.changes + 1 })
  }
  const isRunning = state.upload === 'running'
  return (
    <section class="upload" aria-labelledby="upload-title">
      <h2 id="upload-title">Upload plants</h2>
      <FileInput upload={upload} />
      <p aria-live="polite">{how && `${how}: ${countOf(added)} added, ${there} already there, ${refused} refused.`}</p>
      <ol class="results">
        {results.map((result) => (
          <li key={result}>{result}</li>
        ))}
      </ol>
      <Button text={isRunning ? 'Stop' : 'Close'} onClick={isRunning ? () => running.current.abort() : closeUpload} />
    </section>
  )
}

/** Keeps the focus during an upload, but takes no other file then. */
const FileInput = ({ upload }: { readonly upload: (file: File) => Promise<void> }) => (
  <label>
    A file that Download all has made, or CSV that begins with the line id,name,tag
    <input
      {...{ type: 'file', accept: '.jsonl,.ndjson,.csv,.txt,application/jsonl,text/csv' }}
      ref={focusElement}
      aria-disabled={state.upload === 'running'}
      onClick={choose}
      onChange={({ currentTarget: { files } }) => state.upload !== 'running' && files?.[0] && void upload(files[0])}
    />
  </label>
)

/** The same file can be chosen again. */
function choose(event: MouseEvent & { readonly currentTarget: HTMLInputElement }): void {
  if (state.upload === 'running') event.preventDefault()
  else event.currentTarget.value = ''
}

/** What a file without lines of plants looks like. */
const kindOf = ({ text, json, problem = TOO_LONG }: PlantLine<FileLine>): string | undefined =>
  json === undefined && problem === TOO_LONG ? describeFile(text.replace(/\P{ASCII}/gu, '?')) : undefined

/** Does something with each line of a plant, until it is stopped. Returns how it ended. */
async function eachLine(
  file: File,
  { signal }: AbortController,
  act: (line: PlantLine<FileLine>) => Promise<void>,
): Promise<string> {
  let number = 0
  try {
    // Nothing of a file is stored if a part of it is not UTF-8.
    for await (const _ of partsOf(file)) if (signal.aborted) return 'stopped before the first line'
    for await (const line of plantLines(linesOf(file), { maxBytes: LINE_MAX, tooLong: TOO_LONG, openCsv })) {
      number = line.number
      await act(line)
      if (signal.aborted || line.isLast) return `stopped at line ${number}`
    }
    return 'all lines of the file are done'
  } catch (error) {
    if (error instanceof TypeError) return 'the file is not UTF-8: save it as UTF-8, then choose it again'
    // The file was changed or deleted meanwhile.
    if (error instanceof DOMException) return `the file cannot be read behind line ${number}, so choose it again`
    throw error
  }
}

/** Loads the reader of CSV. */
async function openCsv(header: string): Promise<CsvReader | string | undefined> {
  try {
    const csv = await import(document.querySelector<HTMLLinkElement>('link[rel=module]')?.href ?? '')
    return csv.openCsv(header, FIELDS)
  } catch {
    return 'the part of this page that reads CSV cannot be loaded: load the page again.'
  }
}

/** The lines of a file. It is read part by part, so that it can be of any length. */
async function* linesOf(file: File): AsyncGenerator<FileLine> {
  let [number, rest] = [0, '']
  const toLine = (text: string) => ({ number: ++number, text, bytes: text.length, isUtf8: true })
  for await (const part of partsOf(file)) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield toLine(line)
    if (rest.length > LINE_MAX) break
  }
  if (rest !== '') yield toLine(rest)
}

/** The text of a file, without a BOM. Throws a `TypeError` if it is not UTF-8. */
async function* partsOf(file: File): AsyncGenerator<string> {
  const reader = file
    .stream()
    .pipeThrough(new TextDecoderStream('utf-8', { fatal: true }))
    .getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value
}
