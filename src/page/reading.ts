// Tested in test/http/socket/page-tools.test.ts.
import { useEffect, useState } from 'preact/hooks'
import { Refusal, refusalIn } from './client.ts'
import { isChanging, type State, set, state } from './state.ts'

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

/** Reads it when somebody comes back to the tab, because others may have changed it. */
export const readAgain = () => document.hidden || isChanging() || set({ changes: state.changes + 1, total: undefined })
