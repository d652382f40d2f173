import type { Plant } from './fields.ts'

/**
 * A value that the browser keeps for this page, as JSON: for this tab, or for all tabs. People can turn storage off, and it can
 * be full: then `write` does nothing, and `read` finds nothing. Another service of this host has other keys.
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
    write: (value: T) => attempt((storage) => storage.setItem(key, JSON.stringify(value))),
    clear: () => attempt((storage) => storage.removeItem(key)),
  }
}

export const TAB_TOKEN = slot<string>('token', 'sessionStorage')
export const BROWSER_TOKEN = slot<string>('token', 'localStorage')
/** The plants that were deleted in this tab, the last one first. Each can be created again. */
export const DELETED = slot<readonly Plant[]>('deleted plants', 'sessionStorage')

/** Forgets a token, or any if none is given, and all that another user of the tab must not get. */
export function clearStorage(token?: string): void {
  for (const each of [TAB_TOKEN, BROWSER_TOKEN]) if (token === undefined || each.read() === token) each.clear()
  DELETED.clear()
}
