import { useEffect, useRef, useState } from 'preact/hooks'
import { type Client, plantsIn, refusalIn, toJson } from './client.ts'
import type { Plant } from './fields.ts'
import type { Shared } from './garden.ts'
import { ALL_PLANTS } from './listing.ts'
import { countOf } from './messages.ts'
import { Button } from './parts.tsx'

/** How long a browser may take to open the file. */
const DOWNLOAD_OPENS_MS = 60_000
/** The page shows the results of so many lines. After them it shows only those of refused lines, and as many. */
const RESULTS_MAX = 500

/** Lets the browser store all plants as JSON Lines. It keeps the parts of a blob outside of the memory of the page. */
export async function download(client: Client, tell: (text: string) => void): Promise<void> {
  const parts: Blob[] = []
  let count = 0
  for await (const plants of client.pages(ALL_PLANTS)) {
    parts.push(new Blob(plants.map((plant) => `${toJson(plant)}\n`)))
    count += plants.length
    tell(`Downloaded ${countOf(count)} so far.`)
  }
  tell(`Downloaded ${countOf(count)}.`)
  const href = URL.createObjectURL(new Blob(parts, { type: 'application/jsonl' }))
  Object.assign(document.createElement('a'), { href, download: 'plants.jsonl' }).click()
  setTimeout(() => URL.revokeObjectURL(href), DOWNLOAD_OPENS_MS)
}

/** Adds the plants of a file like that of a download, line by line, and shows what came of each line. It stops when it is closed. */
export function Upload({ client, garden, close }: Shared & { readonly close: () => void }) {
  const [state, setState] = useState<'Adding' | 'Done' | 'Stopped'>()
  const [counts, setCounts] = useState({ added: 0, refused: 0 })
  const [results, setResults] = useState<readonly string[]>([])
  const isStopped = useRef(false)
  const stop = () => {
    isStopped.current = true
  }
  useEffect(() => stop, [])

  const upload = async (file: File) => {
    const found = { added: 0, refused: 0 }
    isStopped.current = false
    setResults([])
    setState('Adding')
    const end = await eachLine(file, isStopped, async (line, number) => {
      const refusal = await client.createFrom(line, plantOf(line)).catch(refusalIn)
      found[refusal ? 'refused' : 'added']++
      setCounts({ ...found })
      const result = `Line ${number}: ${refusal?.message ?? 'added.'}`
      setResults((before) => (before.length < RESULTS_MAX * (refusal ? 2 : 1) ? [...before, result] : before))
      // Without a code nobody has refused it: the user has given up.
      if (refusal?.code === 0) stop()
    })
    setState(isStopped.current ? 'Stopped' : 'Done')
    garden.tell(`Added ${countOf(found.added)}: ${end}.`)
    garden.readAgain()
  }
  return (
    <section class="upload" aria-labelledby="upload-title">
      <h2 id="upload-title">Upload plants</h2>
      <label>
        A file with a plant in each line, like the one that Download gives
        <input
          type="file"
          accept=".jsonl,.ndjson,.txt,application/jsonl"
          disabled={state === 'Adding'}
          onClick={forgetChoice}
          onChange={({ currentTarget: { files } }) => files?.[0] && void upload(files[0])}
        />
      </label>
      <p aria-live="polite">{state && `${state}: ${countOf(counts.added)} added, ${counts.refused} refused.`}</p>
      <ol class="results">
        {results.map((result) => (
          <li key={result}>{result}</li>
        ))}
      </ol>
      <Button onClick={state === 'Adding' ? stop : close}>{state === 'Adding' ? 'Stop' : 'Close'}</Button>
    </section>
  )
}

/** The same file can be chosen again. */
function forgetChoice({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void {
  currentTarget.value = ''
}

/** Does something with each line that is not empty, until it is stopped. Returns how it ended. */
async function eachLine(
  file: File,
  isStopped: { readonly current: boolean },
  act: (line: string, number: number) => Promise<void>,
): Promise<string> {
  let number = 0
  try {
    for await (const line of linesOf(file)) {
      number++
      if (line.trim() !== '') await act(line, number)
      if (isStopped.current) return `stopped at line ${number}`
    }
    return 'all lines of the file are done'
  } catch (error) {
    // The file was changed or deleted meanwhile.
    if (error instanceof DOMException) return `the file cannot be read behind line ${number}, so choose it again`
    throw error
  }
}

/** The lines of a file. It is read part by part, so that it can be of any length. */
async function* linesOf(file: File): AsyncGenerator<string> {
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

/** The plant of a line, to compare it with a stored one. What it cannot read, the server refuses. */
function plantOf(line: string): Partial<Plant> {
  try {
    return plantsIn(`[${line}]`)[0] ?? {}
  } catch {
    return {}
  }
}
