// Tested in test/http/page/page-upload.test.ts.
import { useEffect, useRef, useState } from 'preact/hooks'
import { CODES, isPassing } from './answer.ts'
import { atOnce } from './changes.ts'
import { Refusal, refusalIn } from './client.ts'
import { type Comparison, compare, type Difference, type Refused, save } from './files.ts'
import { countOf, describePlant } from './messages.ts'
import { closeUpload } from './panel.ts'
import { Button, focus, focusElement, refresh } from './parts.tsx'
import { isSame, write } from './plants.ts'
import { set, state } from './state.ts'

/** The page shows so many refused lines, and so many changes. The file that it saves has all refused ones. */
const REFUSED_MAX = 500
const CHANGES_MAX = 10
/** Between two turns of the browser, in which it draws, and reacts to Stop. */
const TURN_EVERY_MS = 100
/** Between two texts that a screen reader reads. */
const TELL_EVERY_MS = 5000

const START = {
  how: '' as '' | 'Reading' | 'Compared' | 'Storing' | 'Done' | 'Stopped',
  file: undefined as File | undefined,
  comparison: undefined as Comparison | undefined,
  refused: [] as Refused[],
  /** How much of the file is read or stored, and the last line that is stored. */
  ...{ bytes: 0, bytesMax: 0, added: 0, replaced: 0, last: 0 },
  /** What a screen reader reads of it, when it does so again, and when the browser gets its next turn. */
  ...{ told: '', tellMs: 0, turnMs: 0 },
  isStopped: false,
}
type Job = typeof START

/** What people see of an upload, and what they can do with it. */
export function Upload() {
  const { job, read, store } = useUpload()
  const { how, file, comparison, refused, told, bytes, bytesMax } = job
  const isBusy = how === 'Reading' || how === 'Storing'
  const { differences = [], changes = [] } = (how === 'Compared' && comparison) || {}
  const news = differences.filter(({ stored }) => !stored)
  const add = news.length > 0 && `Add ${countOf(news.length)}`
  const replace = changes.length > 0 && `${add ? `${add} and replace` : 'Replace'} ${changes.length}`
  const saveRefused = () =>
    save(`refused-${file?.name}`, [comparison?.header ?? '', ...refused.map(({ line }) => `${line.text}\n`)])
  return (
    <section class="upload" aria-labelledby="upload-title">
      <h2 id="upload-title">Upload plants</h2>
      <label>
        A file that Download has made, or CSV that begins with the line id,name,tag
        <input
          {...{ type: 'file', accept: '.jsonl,.ndjson,.csv,.tsv,.txt,application/jsonl,text/csv' }}
          ref={focusElement}
          aria-disabled={isBusy}
          // It keeps the focus, but takes no other file meanwhile. The same file can be chosen again.
          onClick={(event) => (isBusy ? event.preventDefault() : Object.assign(event.currentTarget, { value: '' }))}
          onChange={({ currentTarget: { files } }) => !isBusy && files?.[0] && void read(files[0])}
        />
      </label>
      {isBusy && <progress max={bytesMax} value={bytes} />}
      <p aria-live="polite">{told}</p>
      <ol class="results">
        {changes.slice(0, CHANGES_MAX).map(({ line, plant, stored = plant }) => (
          <li key={line}>{`Line ${line.number}: ${describePlant(stored)} becomes ${describePlant(plant)}.`}</li>
        ))}
        {refused.slice(0, REFUSED_MAX).map(({ line, why }) => (
          <li key={line}>{`Line ${line.number}: ${why}`}</li>
        ))}
      </ol>
      <p class="buttons">
        {add && <Button text={add} kind="primary" onClick={() => store(news)} />}
        {replace && <Button text={replace} onClick={() => store(differences)} />}
        {refused.length > 0 && !isBusy && <Button text="Save the refused lines" onClick={saveRefused} />}
        <Button
          text={isBusy ? 'Stop' : 'Close'}
          onClick={isBusy ? () => Object.assign(job, { isStopped: true }) : closeUpload}
        />
      </p>
    </section>
  )
}

/** A job that is drawn and told when it changes, but not more often than the browser and people can take it. */
function useJob() {
  const [, draw] = useState({})
  const { current: job } = useRef({ ...START })
  const update = async (change: Partial<Job>) => {
    Object.assign(job, change)
    if (!change.how && performance.now() < job.turnMs) return
    if (change.how || performance.now() > job.tellMs)
      Object.assign(job, { told: describe(job), tellMs: performance.now() + TELL_EVERY_MS })
    draw({})
    // A timer would be late by seconds in a tab that is hidden.
    const { port1, port2 } = new MessageChannel()
    await new Promise((resolve) => {
      port1.onmessage = resolve
      port2.postMessage(0)
    })
    job.turnMs = performance.now() + TURN_EVERY_MS
  }
  return { job, update }
}

/** Compares a file with the stored plants, stores what somebody chooses of it, and collects the lines that are refused. */
function useUpload() {
  const { job, update } = useJob()
  const begin = (change: Partial<Job>) => {
    set({ notice: '' })
    focus('[type=file]')
    return update({ ...change, bytes: 0, isStopped: false })
  }
  useEffect(
    () => () => {
      job.isStopped = true
      // The token has ended. Nobody gets the answers that are on their way.
      if (state.problem && job.how === 'Storing') set({ problem: `${state.problem} ${describeEnd(job)}` })
    },
    [],
  )
  const read = async (file: File) => {
    await begin({ ...START, how: 'Reading', file, bytesMax: file.size, refused: [] })
    const comparison = await compare(file, job.refused, async (bytes) => {
      await update({ bytes })
      if (job.isStopped) throw new Refusal(0, 'You have stopped it.')
    }).catch(refusalIn)
    if (!(comparison instanceof Refusal)) return update({ how: 'Compared', comparison })
    set({ notice: `Nothing was stored. ${comparison.message}` })
    await update({ ...START, how: 'Stopped' })
  }
  const store = async (differences: readonly Difference[]) => {
    await begin({ how: 'Storing', bytesMax: differences.reduce((sum, { line }) => sum + line.bytes, 0) })
    set({ upload: 'running' })
    const storeNext = async (difference: Difference) => {
      const { line, stored } = difference
      const refusal = await storeOne(difference).catch(refusalIn)
      if (refusal && isEnding(refusal.code)) throw refusal
      if (refusal) job.refused.push({ line, why: refusal.message })
      else job[stored ? 'replaced' : 'added']++
      await update({ bytes: job.bytes + line.bytes, last: refusal ? job.last : Math.max(job.last, line.number) })
    }
    const { problems, left } = await atOnce(differences, storeNext, () => job.isStopped)
    const isDone = left === 0 && problems.length === 0
    refresh()
    const notice = isDone ? 'All lines of the file are done.' : [...problems, describeEnd(job)].join(' ')
    set({ upload: 'open', notice })
    await update({ how: isDone ? 'Done' : 'Stopped' })
  }
  return { job, read, store }
}

/** Stores a plant of a file. Rejects if it is not as it was compared any more. */
async function storeOne({ plant, stored: before }: Difference): Promise<undefined> {
  const { stored } = await write(plant.id, before, plant)
  if (isSame(stored, plant)) return
  const now = stored ? `now it is ${describePlant(stored)}` : 'it is deleted'
  throw new Refusal(CODES.changed, `somebody has changed this plant meanwhile: ${now}.`)
}

/** Whether the user has given up, or each further plant would be refused, too. */
const isEnding = (code: number) => code < 0 || isPassing(code) || code === CODES.scope || code === CODES.quota

/** The outcome of some requests may be unknown. */
const describeEnd = ({ added, replaced, last }: Job) =>
  `Of the file, at least ${[countOf(added), added === 1 ? 'is' : 'are'].join(' ')} added and ${replaced} replaced${last > 0 ? `, the last one in line ${last}` : ''}. Choose the same file again to store the rest.`

function describe({ how, comparison, bytes, bytesMax, added, replaced, refused }: Job): string {
  if (how === 'Reading') return `Reading: ${Math.floor((bytes / bytesMax) * 100)} %.`
  const { differences = [], changes = [], equal = 0 } = comparison ?? {}
  const compared = { new: differences.length - changes.length, changed: changes.length, equal }
  const counts = { ...(how === 'Compared' ? compared : { added, replaced }), refused: refused.length }
  return `${how}: ${Object.entries(counts)
    .map(([name, count]) => `${count.toLocaleString('en')} ${name}`)
    .join(', ')}.`
}
