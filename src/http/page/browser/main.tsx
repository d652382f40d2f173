import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { connect, Refusal, refusalIn, type Session, type Wait } from './client.ts'
import { Button, Notices, type Pause, Picture } from './parts.tsx'
import { Plants } from './plants.tsx'
import { SignIn } from './sign-in.tsx'
import { BROWSER_TOKEN, clearStorage, DELETED, EDIT, TAB_TOKEN } from './storage.ts'

/** The documentation, if the server has it. */
const docs = document.querySelector<HTMLLinkElement>('link[rel=help]')

/** All requests that wait share one pause: it ends for all of them. */
function usePause() {
  const [pause, setPause] = useState<Pause>()
  const waiting = useRef<{ readonly retry: () => void; readonly giveUp: () => void }[]>([])
  const end = (how: 'retry' | 'giveUp') => () => {
    setPause(undefined)
    for (const each of waiting.current.splice(0)) each[how]()
  }
  const wait: Wait = (message, seconds) =>
    new Promise((resolve, reject) => {
      waiting.current.push({ retry: resolve, giveUp: () => reject(new Refusal(0, message)) })
      const added = { message, seconds, retry: end('retry'), giveUp: end('giveUp') }
      setPause((pause) => (pause && pause.seconds <= seconds ? pause : added))
    })
  return { pause, wait, clear: end('giveUp') }
}

/** Signs in and out. */
function useSession(wait: Wait, endPause: () => void) {
  const [session, setSession] = useState<Session>()
  const [problem, setProblem] = useState('')
  /** A token that the browser keeps is tried at first. */
  const [isReturning, setIsReturning] = useState(true)
  /** The token of the latest sign-in. An earlier one that still waits counts no more. */
  const latest = useRef('')

  const forget = (token: string, reason: string) => {
    for (const each of [TAB_TOKEN, BROWSER_TOKEN]) if (each.read() === token) each.clear()
    // An edit stays, so that its plant is not lost. Another user must not get the deleted plants.
    DELETED.clear()
    setSession(undefined)
    setProblem(reason)
  }
  const signIn = async (token: string, isKept: boolean) => {
    const isLatest = () => latest.current === token
    latest.current = token
    setProblem('')
    endPause()
    const client = connect(token, wait, (reason) => isLatest() && forget(token, reason))
    const canWrite = await client.canWrite().catch(refusalIn)
    if (!isLatest()) return
    setIsReturning(false)
    if (canWrite instanceof Refusal) return setProblem(canWrite.message)
    const slot = isKept ? BROWSER_TOKEN : TAB_TOKEN
    slot.write(token)
    setSession({ client, canWrite })
  }
  const signOut = () => {
    const question = 'A change is not finished, so its plant may be missing. Sign out all the same?'
    if (EDIT.read() !== undefined && !confirm(question)) return
    // A sign-in that is on its way counts no more, and nothing is written any more.
    latest.current = ''
    setSession(undefined)
    setIsReturning(true)
    clearStorage()
    // Ends all requests, and leaves nothing in memory. The next user begins at the first page.
    history.replaceState(null, '', location.pathname)
    location.reload()
  }
  useEffect(() => {
    const [ofTab, ofBrowser] = [TAB_TOKEN.read(), BROWSER_TOKEN.read()]
    if (ofTab !== undefined) void signIn(ofTab, false)
    else if (ofBrowser !== undefined) void signIn(ofBrowser, true)
    else setIsReturning(false)
  }, [])
  return { session, problem, isReturning, signIn, signOut }
}

/** The page: the form for a token, or the plants of its user. */
function App() {
  const { pause, wait, clear } = usePause()
  const { session, problem, isReturning, signIn, signOut } = useSession(wait, clear)
  const main = useRef<HTMLElement>(null)
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the plants
      </button>
      <header>
        <Picture />
        <h1>Plant Store</h1>
        {docs && <a href={docs.href}>API</a>}
        {(session || isReturning) && (
          <Button kind="quiet" onClick={signOut}>
            Sign out
          </Button>
        )}
      </header>
      <main ref={main} tabIndex={-1}>
        {session && <Plants {...session} pause={pause} />}
        {!session && isReturning && <p class="state">One moment…</p>}
        {!session && !isReturning && <SignIn problem={problem} signIn={signIn} />}
        {!session && <Notices pause={pause} />}
      </main>
    </>
  )
}

render(<App />, document.body)
