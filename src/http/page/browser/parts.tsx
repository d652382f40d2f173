import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

interface ButtonProps {
  /** How important the button is. `danger` deletes something. `plain` by default. */
  readonly kind?: 'primary' | 'plain' | 'quiet' | 'danger'
  /** What a screen reader reads instead of the children. */
  readonly label?: string
  /** Without a function the button does nothing, and keeps the focus of the keyboard. */
  readonly onClick: (() => void) | false | '' | undefined
  readonly children: ComponentChildren
}

/** A button that sends no form. */
export const Button = ({ kind = 'plain', label, onClick, children }: ButtonProps) => (
  <button type="button" class={kind} aria-label={label} aria-disabled={!onClick} onClick={onClick || undefined}>
    {children}
  </button>
)

/** Requests wait until they are sent again. */
export interface Pause {
  readonly message: string
  readonly seconds: number
  readonly retry: () => void
  readonly giveUp: () => void
}

interface NoticesProps {
  /** What happened last. */
  readonly text?: string
  readonly pause: Pause | undefined
}

/** What people must not miss, always at the lower edge of the window. */
export const Notices = ({ text = '', pause }: NoticesProps) => (
  <aside class="notices" aria-label="Messages">
    <p role="status">{text}</p>
    {pause && <PauseNotice key={pause} {...pause} />}
  </aside>
)

/** Counts the seconds of a pause. A screen reader reads the message once, and not the seconds. */
function PauseNotice({ message, seconds, retry, giveUp }: Pause) {
  const [left, setLeft] = useState(seconds)
  useEffect(() => {
    const timer = setTimeout(() => (left > 1 ? setLeft(left - 1) : retry()), 1000)
    return () => clearTimeout(timer)
  }, [left])
  return (
    <p class="pause">
      <span role="alert">{message}</span> <span aria-hidden="true">Next try in {left} s.</span>
      <Button onClick={retry}>Try now</Button>
      <Button onClick={giveUp}>Give up</Button>
    </p>
  )
}

/** The plant of the icon. */
export const Picture = () => (
  <img class="picture" alt="" src={document.querySelector<HTMLLinkElement>('link[rel=icon]')?.href} />
)

interface CopyProps {
  readonly title: string
  readonly text: string
}

/** A text to copy. Without the clipboard, which browsers give only to https and to this machine, people select it. */
export function Copy({ title, text }: CopyProps) {
  const [isCopied, setIsCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setIsCopied(true)
  }
  return (
    <figure>
      <figcaption>
        {title}
        {navigator.clipboard && <Button onClick={() => void copy()}>{isCopied ? 'Copied' : `Copy ${title}`}</Button>}
      </figcaption>
      <pre>
        <code>{text}</code>
      </pre>
    </figure>
  )
}
