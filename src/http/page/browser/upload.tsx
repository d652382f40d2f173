import { useEffect, useState } from 'preact/hooks'
import { CODES, parse } from './answer.ts'
import { createFrom, isGivenUp, refusalIn } from './client.ts'
import { countOf } from './messages.ts'
import { close } from './panel.ts'
import { Button } from './parts.tsx'
import { set, state } from './state.ts'

/** The page shows the results of so many lines. After them it shows only those of refused lines, and as many. */
const RESULTS_MAX = 500

interface Progress {
  readonly state: '' | 'Adding' | 'Done' | 'Stopped'
  readonly added: number
  readonly refused: number
  readonly results: readonly string[]
}

const NOTHING: Progress = { state: '', added: 0, refused: 0, results: [] }

/** Adds the plants of a file like that of a download, and shows what came of each line. It stops when it is closed. */
export function Upload() {
  const [progress, setProgress] = useState(NOTHING)
  const [job, setJob] = useState(new AbortController())
  useEffect(() => () => job.abort(), [job])

  const upload = async (file: File) => {
    const job = new AbortController()
    setJob(job)
    let now: Progress = { ...NOTHING, state: 'Adding' }
    const show = (change: Partial<Progress>) => {
      now = { ...now, ...change }
      setProgress(now)
    }
    const end = await eachLine(file, job, async (line, number) => {
      const refusal = await createFrom(line, parse(line) ?? {}).catch(refusalIn)
      const { results, added, refused } = now
      const isShown = results.length < RESULTS_MAX * (refusal ? 2 : 1)
      const result = `Line ${number}: ${refusal?.message ?? 'added.'}`
      const isRefused = refusal && refusal.code !== CODES.unknown
      show({
        added: refusal ? added : added + 1,
        refused: isRefused ? refused + 1 : refused,
        results: isShown ? [...results, result] : results,
      })
      if (refusal && isGivenUp(refusal)) job.abort()
    })
    show({ state: job.signal.aborted ? 'Stopped' : 'Done' })
    set({ notice: `Added ${countOf(now.added)}: ${end}.`, changes: state.changes + 1 })
  }
  const { state: how, added, refused, results } = progress
  return (
    <section class="upload" aria-labelledby="upload-title">
      <h2 id="upload-title">Upload plants</h2>
      <label>
        A file with a plant in each line, like the one that Download gives
        <input
          {...{ type: 'file', accept: '.jsonl,.ndjson,.txt,application/jsonl', disabled: how === 'Adding' }}
          onClick={forgetChoice}
          onChange={({ currentTarget: { files } }) => files?.[0] && void upload(files[0])}
        />
      </label>
      <p aria-live="polite">{how && `${how}: ${countOf(added)} added, ${refused} refused.`}</p>
      <ol class="results">
        {results.map((result) => (
          <li key={result}>{result}</li>
        ))}
      </ol>
      {how === 'Adding' ? <Button text="Stop" onClick={() => job.abort()} /> : <Button text="Close" onClick={close} />}
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
  { signal }: AbortController,
  act: (line: string, number: number) => Promise<void>,
): Promise<string> {
  let number = 0
  try {
    for await (const line of linesOf(file)) {
      number++
      if (line.trim() !== '') await act(line, number)
      if (signal.aborted) return `stopped at line ${number}`
    }
    return 'all lines of the file are done'
  } catch (error) {
    if (error instanceof TypeError) return `the file is not UTF-8 behind line ${number}, so convert it`
    // The file was changed or deleted meanwhile.
    if (error instanceof DOMException) return `the file cannot be read behind line ${number}, so choose it again`
    throw error
  }
}

/** The lines of a file. It is read part by part, so that it can be of any length. */
async function* linesOf(file: File): AsyncGenerator<string> {
  const decoder = new TextDecoderStream('utf-8', { fatal: true })
  const reader = file.stream().pipeThrough(decoder).getReader()
  let rest = ''
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}
