import type { Plant } from './fields.ts'

/**
 * A value that the browser keeps for this page, as JSON: for this tab, or for all tabs. People can turn storage off, and it can be
 * full: then `write` returns false, and `read` finds nothing. Another service of this host has other keys.
 */
function slot<T>(name: string, area: 'sessionStorage' | 'localStorage') {
  const key = `plantstore ${name} of ${location.pathname}`
  /** Even the property throws if storage is turned off. */
  const attempt = <R>(act: (storage: Storage) => R): R | undefined => {
    try {
      return act(window[area])
    } catch {
      return undefined
    }
  }
  return {
    read: () => attempt<T | undefined>((storage) => JSON.parse(storage.getItem(key) ?? 'null') ?? undefined),
    /** Whether the browser keeps the value now: it is read back. */
    write(value: T): boolean {
      const text = JSON.stringify(value)
      attempt((storage) => storage.setItem(key, text))
      return attempt((storage) => storage.getItem(key)) === text
    },
    clear: () => attempt((storage) => storage.removeItem(key)),
  }
}

/** An edit deletes the old plant, then creates the new one. */
export interface Edit {
  readonly old: Plant
  readonly new: Plant
}

export const TAB_TOKEN = slot<string>('token', 'sessionStorage')
export const BROWSER_TOKEN = slot<string>('token', 'localStorage')
/** The plants that were deleted in this tab, the last one first. Each can be created again. */
export const DELETED = slot<readonly Plant[]>('deleted plants', 'sessionStorage')
/** An edit that has begun. It is there until the new plant is stored, so that a tab that was closed or reloaded can finish it. */
export const EDIT = slot<Edit>('edit', 'sessionStorage')

/** Forgets a token, or any if none is given, and all that another user of the tab must not get. */
export function clearStorage(token?: string): void {
  for (const each of [TAB_TOKEN, BROWSER_TOKEN]) if (token === undefined || each.read() === token) each.clear()
  for (const each of [DELETED, EDIT]) each.clear()
}

/** Whether the tab can keep both plants during an edit. An unfinished edit must not be overwritten. */
export function keepsEdits(): boolean {
  if (EDIT.read() !== undefined) return true
  const nothing = { id: '', name: '' }
  const isKept = EDIT.write({ old: nothing, new: nothing })
  EDIT.clear()
  return isKept
}
