// Tested in test/http/page/page-tools.test.ts.
import { focus } from './parts.tsx'
import { type State, set, state } from './state.ts'
import { KEPT, type Kept } from './storage.ts'

/** Keeps what is typed, over a reload, too. */
export function keep(change: Partial<Kept>): void {
  set(change)
  const { user, panel, typed } = state
  KEPT.write({ user, typed, panel: hasTyped() ? panel : undefined })
}

/** Whether somebody has typed in a form, and not stored it. */
export const hasTyped = () => Object.keys(state.typed).length > 0

/** Opens something above the list, unless the user wants to keep what is typed in the form that is open. */
export function open(panel: State['panel']): void {
  if (panel === state.panel) return
  if (hasTyped() && !confirm('Close the form, and lose what you have typed?')) return
  if (panel !== undefined) keep({ panel, typed: {} })
  else close()
}

export function close(): void {
  const { panel } = state
  keep({ panel: undefined, typed: {} })
  // The element that had the focus is gone.
  if (typeof panel === 'object') set({ focused: `[data-id='${panel.id}']` })
  else focus('main')
}

export function closeUpload(): void {
  set({ upload: undefined })
  focus('main')
}
