import { useEffect, useState } from 'preact/hooks'

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
    <p class="notice">
      <span role="alert">{message}</span>
      <span aria-hidden="true">Next try in {left} s.</span>
      <button type="button" onClick={retry}>
        Try now
      </button>
      <button type="button" onClick={giveUp}>
        Give up
      </button>
    </p>
  )
}
