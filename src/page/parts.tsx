// Tested in test/http/socket/page.test.ts.
import type { ComponentChildren, ComponentProps } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { formatAddress } from './address.ts'
import { restore, undoable } from './changes.ts'
import { refusalIn } from './client.ts'
import { isChanging, type State, set, state } from './state.ts'

interface ButtonProps extends Pick<ComponentProps<'button'>, 'aria-label' | 'onClick'> {
  readonly text: string
  readonly kind?: 'primary' | 'quiet' | 'danger'
}

/** A button that sends no form. `danger` deletes something. If it has a label, its text does not change. */
export const Button = ({ text, kind, ...props }: ButtonProps) => (
  <button type="button" class={kind} {...props}>
    {text}
  </button>
)

/** What people must not miss, always at the lower edge of the window. */
export function Notices({ children }: { readonly children: ComponentChildren }) {
  const undos = undoable().length
  return (
    <aside class="notices" aria-label="Messages">
      {children}
      <p>
        <span role="status">{state.notice}</span>
        {state.added && <a href={formatAddress({ ...state.address, plant: state.added })}>Show it</a>}
        {undos > 0 && <Button text={undos === 1 ? 'Undo the delete' : `Undo ${undos} deletes`} onClick={restore} />}
      </p>
      {state.ending && (
        <p>
          <span role="alert">{state.ending}</span> <Button text="Close" onClick={() => set({ ending: '' })} />
        </p>
      )}
      {[state.job, state.progress].map(
        (each) =>
          each && (
            <p>
              {each.text} <Button text="Stop" onClick={each.stop} />
            </p>
          ),
      )}
      {state.pause && <Pause key={state.pause.seconds} {...state.pause} />}
    </aside>
  )
}

/** Counts the seconds of a pause. A screen reader reads the message once, and not the seconds. */
function Pause({ message, seconds }: NonNullable<State['pause']>) {
  const [left, setLeft] = useState(seconds)
  const end = (isSentAgain: boolean) => state.pause?.end(isSentAgain)
  useEffect(() => {
    const timer = setTimeout(() => (left > 1 ? setLeft(left - 1) : end(true)), 1000)
    return () => clearTimeout(timer)
  }, [left])
  return (
    <p class="pause">
      <span role="alert">{message}</span> <span aria-hidden="true">{`Next try in ${left} s.`}</span>
      <Button text="Try now" onClick={() => end(true)} />
      <Button text="Give up" onClick={() => end(false)} />
    </p>
  )
}

/** Terms, and a text for each. */
export const Terms = ({ of }: { readonly of: readonly (readonly [term: string, text: string | undefined])[] }) => (
  <dl>
    {of.map(([term, text]) => (
      <div key={term}>
        <dt>{term}</dt>
        <dd>
          <bdi>{text}</bdi>
        </dd>
      </div>
    ))}
  </dl>
)

/** Names a view in the title of the tab while it is shown. */
export const useTitle = (view: string) =>
  useEffect(() => {
    const { title } = document
    document.title = `${view} – Plant Store`
    return () => void Object.assign(document, { title })
  }, [view])

/** The plant of the icon. */
export const Picture = () => (
  <img class="picture" alt="" src={document.querySelector<HTMLLinkElement>('link[rel=icon]')?.href} />
)

/** Gives the focus to an element once it is there: the one that had it is gone, or must not be pressed again. */
export const focusElement = (element: HTMLElement | null): void => element?.focus()

/** Moves the focus to an element if it is there. The page scrolls to what is typed in or pressed next, but not to its whole. */
export const focus = (selector: string) =>
  document.querySelector<HTMLElement>(selector)?.focus({ preventScroll: selector === 'main' })

/** Reads what changes the state at first, and when `inputs` change. What was read before stays meanwhile. */
export function useRead(read: () => Promise<Partial<State>>, ...inputs: readonly unknown[]) {
  const [how, setHow] = useState({ problem: '', isLoading: true })
  useEffect(() => {
    let isCurrent = true
    setHow({ problem: '', isLoading: true })
    const end = (found: Partial<State>, problem = '') => {
      if (!isCurrent) return
      set(found)
      setHow({ problem, isLoading: false })
    }
    void read().then(end, (error) => end({}, refusalIn(error).message))
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
