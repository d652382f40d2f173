// Tested in test/http/socket/page-tools.test.ts.
import { useEffect, useState } from 'preact/hooks'
import { Refusal, refusalIn } from './client.ts'
import { formatOf, save } from './files.ts'
import { countOf } from './messages.ts'
import { focus } from './parts.tsx'
import { listPlants } from './plants.ts'
import { type State, set, state } from './state.ts'

/** So many plants a request if all are read. */
export const ALL_LIMIT = 1000

/** Reads what changes the state at first, and when `inputs` change. What was read before stays meanwhile. */
export function useRead(read: () => Promise<Partial<State>>, ...inputs: readonly unknown[]) {
  const [how, setHow] = useState({ problem: '', isLoading: true })
  useEffect(() => {
    let isCurrent = true
    setHow({ problem: '', isLoading: true })
    const end = (found: Partial<State> | Refusal) => {
      if (!isCurrent) return
      const isRead = !(found instanceof Refusal)
      if (isRead) set(found)
      setHow({ problem: isRead ? '' : found.message, isLoading: false })
    }
    void read().catch(refusalIn).then(end)
    return () => {
      isCurrent = false
    }
  }, inputs)
  return how
}

/** Reads again what is shown. */
export const refresh = () => set({ changes: state.changes + 1, search: undefined, total: undefined, notice: '' })

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
  const format = await formatOf(kind).catch(refusalIn)
  if (format instanceof Refusal) return set({ notice: format.message })
  const parts = [new Blob([format.header])]
  let [count, after] = [0, '']
  do {
    set({ job: { text: `Downloaded ${countOf(count)} so far.`, stop } })
    const page = await listPlants(ALL_LIMIT, after).catch(refusalIn)
    if (isStopped) return
    if (page instanceof Refusal) return set({ job: undefined, notice: page.message })
    count += page.plants.length
    parts.push(new Blob([format.toText(page.plants)]))
    after = page.end
  } while (after !== '')
  save(`plants.${kind}`, parts)
  set({ job: undefined, total: count, notice: `Downloaded ${countOf(count)}.` })
}
