// Tested in test/http/socket/page.test.ts.
import { type Address, formatAddress, parseAddress } from './address.ts'
import type { Plant } from './fields.ts'
import { type Listing, type Said, type Search, withSaid } from './rows.ts'

/** Texts: whose token it is, when it ends if that is soon, why a sign-in failed or a session ended, and what happened last. */
type Texts = Readonly<Record<'user' | 'ending' | 'problem' | 'notice', string>>

/** All that parts of the page share. The page is drawn anew after each change of it. */
export interface State extends Texts {
  readonly address: Address
  /** A token that the browser keeps is tried, or a reload signs out. */
  readonly isReturning: boolean
  /** Whether the token may write. `undefined` as long as nobody is signed in. */
  readonly canWrite: boolean | undefined
  /** Requests wait until they are sent again. */
  readonly pause: { readonly message: string; readonly seconds: number } | undefined
  /** What goes on in the background, and how many plants are deleted or restored so far. */
  readonly job: { readonly text: string; readonly stop: () => void } | undefined
  readonly progress: State['job']
  /** The id of the plant that the notice tells of, if it leads there. */
  readonly added: string
  /** What is open above the list: the form for a new plant or for one that is edited. */
  readonly panel: 'new' | Plant | undefined
  /** Whether the upload is open, too, and whether it adds plants. Then only Stop ends it, and leaving asks. */
  readonly upload: 'open' | 'running' | undefined
  /** What is typed in that form, by the names of its fields. */
  readonly typed: Readonly<Record<string, string>>
  /** Plants whose delete was sent since the sign-in or the last Undo, which puts them back. */
  readonly undo: readonly Plant[]
  /** The ids of the plants that are being changed, and of the rows that are ticked until another address shows others. */
  readonly busy: ReadonlySet<string>
  readonly selected: ReadonlySet<string>
  /** Grows when what is shown shall be read again. */
  readonly changes: number
  /** Behind which ids the pages begin that were shown, by their numbers. */
  readonly starts: ReadonlyMap<number, string>
  /** The page of the list that was read last, the search, and the plant with an address of its own: `undefined` if it is gone. */
  readonly list: Listing | undefined
  readonly search: Search | undefined
  readonly one: { readonly id: string; readonly plant: Plant | undefined } | undefined
  /** How many plants there are, if all were read since the last change. */
  readonly total: number | undefined
  /** The selector of the row that gets the focus once it is there. */
  readonly focused: string
}

const START: State = {
  address: parseAddress(location.hash),
  ...{ isReturning: false, canWrite: undefined, user: '', ending: '', problem: '', notice: '', pause: undefined },
  ...{ job: undefined, progress: undefined, panel: undefined, typed: {}, upload: undefined, focused: '', added: '' },
  ...{ undo: [], busy: new Set(), changes: 0, starts: new Map(), list: undefined, search: undefined, one: undefined },
  ...{ selected: new Set(), total: undefined },
}

export let state = START
let draw: (state: State) => void = () => {}

export function set(change: Partial<State>): void {
  // What has been added belongs to its notice.
  state = { ...state, added: 'notice' in change ? '' : state.added, ...change }
  draw(state)
}

/** All that shows plants, with what the server has said of some meanwhile. */
export function shownWith(said: Said): Partial<State> {
  const { list, search, one } = state
  return {
    total: undefined,
    list: list && withSaid(list, said),
    search: search && { ...withSaid(search, said, search.filter), searched: undefined },
    one: one && said.has(one.id) ? { ...one, plant: said.get(one.id) } : one,
  }
}

/** Whether plants are being changed. Then leaving asks. */
export const isChanging = () => state.busy.size > 0 || state.upload === 'running'

/** Calls a function after each change. */
export function start(drawState: typeof draw): void {
  draw = drawState
  addEventListener('popstate', () => {
    depth = history.state?.depth ?? (state.user ? depth + 1 : 0)
    // Then it is not known yet whose address this is. The sign-in arrives once more.
    if (!state.isReturning) arrive()
  })
}

/** How many entries of the history before this one have addresses of the user. */
let depth = Number(history.state?.depth ?? 0)
/** How long a browser may take to go to another entry. */
const MOVE_MAX_MS = 1000

/** Takes the address of this entry of the history, and marks it as one of the user. Of another user's entry nothing stays. */
export function arrive(): void {
  const { user } = state
  const isForeign = (history.state?.user ?? user) !== user
  history.replaceState(user ? { user, depth } : null, '', isForeign ? '#/' : location.href)
  set({ address: parseAddress(location.hash, state.address), notice: '', selected: new Set() })
}

/** Leaves no address and no title of a user in the history. A new entry ends those that were ahead. */
export async function forgetAddresses(): Promise<void> {
  if (depth > 0) {
    await new Promise((resolve) => {
      addEventListener('popstate', resolve, { once: true })
      setTimeout(resolve, MOVE_MAX_MS)
      history.go(-depth)
    })
  }
  history.replaceState(null, '', '#/')
  // The entry gets a title only if that changes.
  for (const title of ['', 'Plant Store']) document.title = title
  history.pushState(null, '', '#/')
  depth = 0
  set({ address: parseAddress('') })
}

/**
 * Goes to an address without a step of the history: what `change` does not name stays. What happened elsewhere is no news here.
 * Links make the steps, to a page of the list or to a plant, so the browser's Back undoes these alone.
 */
export function go(change: Partial<Address>, notice = ''): void {
  const address = { ...state.address, ...change }
  history.replaceState(history.state, '', formatAddress(address))
  set({ address, notice, selected: new Set() })
}

/** Forgets all but the address, and says why. */
export const reset = (problem: string): void => set({ ...START, address: state.address, problem })
