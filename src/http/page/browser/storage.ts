import type { Plant } from './fields.ts'

/**
 * A value that the browser keeps for this page, as JSON: for this tab, or for all tabs. People can turn storage off, and it can be
 * full: then `write` returns false, and `read` finds nothing. Another service of this host has other keys.
 */
function slot<T>(name: string, area: 'sessionStorage' | 'localStorage') {
  const key = `plantstore ${name} of ${location.pathname}`
  /** Even the property throws if storage is turned off. */
  const attempt = <R>(act: (storage: Storage) => R, otherwise: R): R => {
    try {
      return act(window[area])
    } catch {
      return otherwise
    }
  }
  return {
    read: () => attempt<T | undefined>((storage) => JSON.parse(storage.getItem(key) ?? 'null') ?? undefined, undefined),
    /** Whether the browser keeps the value now: it is read back. */
    write(value: T): boolean {
      const text = JSON.stringify(value)
      return attempt((storage) => {
        storage.setItem(key, text)
        return storage.getItem(key) === text
      }, false)
    },
    clear: () => attempt((storage) => storage.removeItem(key), undefined),
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

/** Forgets everything. */
export function clearStorage(): void {
  for (const each of [TAB_TOKEN, BROWSER_TOKEN, DELETED, EDIT]) each.clear()
}
