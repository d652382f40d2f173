import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'

interface ButtonProps {
  /** What a screen reader reads instead of the children. */
  readonly label?: string
  /** Without a function the button does nothing, and keeps the focus of the keyboard. */
  readonly onClick: (() => void) | false | '' | undefined
  readonly children: ComponentChildren
}

/** A button that is not the first choice. */
export const Quiet = ({ label, onClick, children }: ButtonProps) => (
  <button type="button" aria-label={label} aria-disabled={!onClick} onClick={onClick || undefined}>
    {children}
  </button>
)

/** A request that waits until it is sent again. */
export interface Pause {
  readonly message: string
  readonly seconds: number
  readonly retry: () => void
  readonly giveUp: () => void
}

/** Counts the seconds of a pause. A screen reader reads the message once, and not the seconds. */
export function PauseNotice({ message, seconds, retry, giveUp }: Pause) {
  const [left, setLeft] = useState(seconds)
  useEffect(() => {
    const timer = setTimeout(() => (left > 1 ? setLeft(left - 1) : retry()), 1000)
    return () => clearTimeout(timer)
  }, [left])
  return (
    <p>
      <span role="alert">{message}</span> <span aria-hidden="true">Next try in {left} s.</span>
      <Quiet onClick={retry}>Try now</Quiet>
      <Quiet onClick={giveUp}>Give up</Quiet>
    </p>
  )
}

interface SignInProps {
  readonly problem: string
  readonly signIn: (token: string) => Promise<void>
}

/** The form for a token, which is never shown. */
export const SignIn = ({ problem, signIn }: SignInProps) => (
  <form
    onSubmit={(event) => {
      event.preventDefault()
      void signIn(String(new FormData(event.currentTarget).get('token')).trim())
    }}
  >
    <label>
      Access token
      <input name="token" type="password" autocomplete="off" required aria-invalid={problem !== '' || undefined} />
    </label>
    <p role="alert">{problem}</p>
    <button type="submit">Sign in</button>
    <small>
      The operator of this server makes tokens. The browser keeps yours until you sign out, even if you close the tab.
    </small>
  </form>
)
