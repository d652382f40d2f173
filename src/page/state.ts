// Tested in test/http/socket/page.test.ts.
import { type Address, formatAddress, parseAddress } from './address.ts'
import { type Listing, type Plant, type Said, type Search, withSaid } from './rows.ts'

/** Whose token it is, when it ends if that is soon, why the last one is not used any more, and what happened last. */
type Texts = Readonly<Record<'user' | 'ending' | 'problem' | 'notice', string>>

/** The page of the list and the plant of an address that were read last, the search, and how many plants there are, if known. */
interface Shown {
  readonly list?: Listing | undefined
  readonly one?: Readonly<{ id: string; plant: Plant | undefined }> | undefined
  readonly search?: Search | undefined
  readonly total?: number | undefined
}

/** All that parts of the page share. The page is drawn anew after each change of it. */
export interface State extends Texts, Shown {
  readonly address: Address
  /** A token that the browser keeps is tried, or a reload signs out. */
  readonly isReturning: boolean
  /** Whether the token may write. `undefined` as long as nobody is signed in. */
  readonly canWrite?: boolean | undefined
  /** Requests wait until they are sent again, or given up. */
  readonly pause?: Readonly<{ message: string; seconds: number; end: (isSentAgain: boolean) => void }> | undefined
  /** What goes on in the background, and how many plants are deleted or restored so far. */
  readonly job?: Readonly<{ text: string; stop: () => void }> | undefined
  readonly progress?: State['job']
  /** The plant that the notice leads to. */
  readonly added?: string | undefined
  /** What is open above the list: the form for a new plant or for one that is edited, and what is typed there, by field. */
  readonly panel?: 'new' | Plant | undefined
  readonly typed: Readonly<Record<string, string>>
  /** Whether the upload is open, too, and whether it adds plants. Then only Stop ends it, and leaving asks. */
  readonly upload?: 'open' | 'running' | undefined
  /** Plants whose delete was sent since the sign-in or the last Undo, which puts them back. */
  readonly undo: readonly Plant[]
  /** The ids of the plants that are being changed, and of the rows that are ticked until another address shows others. */
  readonly busy: ReadonlySet<string>
  readonly selected: ReadonlySet<string>
  /** Grows when what is shown shall be read again. */
  readonly changes: number
  /** Behind which ids the pages begin that were shown, by their numbers. */
  readonly starts: ReadonlyMap<number, string>
  /** The selector of the row that gets the focus once it is there. */
  readonly focused: string
}

const START: State = {
  ...{ address: parseAddress(location.hash), isReturning: false, user: '', ending: '', problem: '', notice: '' },
  ...{ typed: {}, undo: [], busy: new Set(), selected: new Set(), changes: 0, starts: new Map(), focused: '' },
}

export let state = START
let draw: (state: State) => void = () => {}

export function set(change: Partial<State>): void {
  // What has been added belongs to its notice.
  state = { ...state, ...('notice' in change && { added: undefined }), ...change }
  draw(state)
}

/** All that shows plants, with what the server has said of some meanwhile. */
export function shownWith(said: Said): Shown {
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
export function reset(problem: string): void {
  state = { ...START, address: state.address }
  set({ problem })
}
