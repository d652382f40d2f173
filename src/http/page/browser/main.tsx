import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { connect, Refusal, refusalIn, type Session, type Wait } from './client.ts'
import { type Pause, PauseNotice, Quiet, SignIn } from './parts.tsx'
import { Plants } from './plants.tsx'

/** Where this tab keeps the token. Another service of this host has another key. */
const KEY = `plantstore token of ${location.pathname}`

/** The documentation, if the server has it. */
const docs = document.querySelector<HTMLLinkElement>('link[rel=help]')

/** The page: the form for a token, or the plants of its user. */
function App() {
  const [session, setSession] = useState<Session>()
  const [problem, setProblem] = useState('')
  const [pauses, setPauses] = useState<readonly Pause[]>([])

  /** The token of the latest sign-in. An earlier one that still waits counts no more. */
  const latest = useRef('')

  const wait: Wait = (message, seconds) =>
    new Promise((resolve, reject) => {
      const end = (settle: () => void) => () => {
        setPauses((pauses) => pauses.filter((each) => each !== pause))
        settle()
      }
      const pause = { message, seconds, retry: end(resolve), giveUp: end(() => reject(new Refusal(0, message))) }
      setPauses((pauses) => [...pauses, pause])
    })

  const forget = (reason: string) => {
    sessionStorage.removeItem(KEY)
    setSession(undefined)
    setProblem(reason)
  }

  const signIn = async (token: string) => {
    const isLatest = () => latest.current === token
    latest.current = token
    setPauses([])
    const client = connect(token, wait, (reason) => isLatest() && forget(reason))
    const canWrite = await client.canWrite().catch(refusalIn)
    if (!isLatest()) return
    if (canWrite instanceof Refusal) return forget(canWrite.message)
    sessionStorage.setItem(KEY, token)
    setSession({ client, canWrite })
  }

  const signOut = () => {
    sessionStorage.removeItem(KEY)
    // Ends all requests, and leaves nothing in memory.
    location.reload()
  }

  useEffect(() => {
    const token = sessionStorage.getItem(KEY)
    if (token !== null) void signIn(token)
  }, [])

  return (
    <>
      <header class="row">
        <h1>Plant Store</h1>
        {docs && <a href={docs.href}>API</a>}
        {session && <Quiet onClick={signOut}>Sign out</Quiet>}
      </header>
      <main>
        {pauses.map((pause) => (
          <PauseNotice key={pause} {...pause} />
        ))}
        {session ? <Plants {...session} /> : <SignIn problem={problem} signIn={signIn} />}
      </main>
    </>
  )
}

render(<App />, document.body)
