import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type Client, connect, Refusal, refusalIn, type Wait } from './client.ts'
import { type Pause, PauseNotice } from './pause.tsx'
import { Plants } from './plants.tsx'
import { SignIn } from './sign-in.tsx'

/** Where this tab keeps the token. Another service of this host has another key. */
const KEY = `plantstore token of ${location.pathname}`

/** The documentation, if the server has it. */
const docs = document.querySelector<HTMLLinkElement>('link[rel=help]')

/** The page: the form for a token, or the plants of its user. */
function App() {
  const [session, setSession] = useState<{ readonly client: Client; readonly canWrite: boolean }>()
  const [isChecking, setIsChecking] = useState(false)
  const [problem, setProblem] = useState('')
  const [pauses, setPauses] = useState<readonly Pause[]>([])

  const wait: Wait = (message, seconds) =>
    new Promise((resolve, reject) => {
      const end = (settle: () => void) => () => {
        setPauses((pauses) => pauses.filter((each) => each !== pause))
        settle()
      }
      const pause = { message, seconds, retry: end(resolve), giveUp: end(() => reject(new Refusal(0, message))) }
      setPauses((pauses) => [...pauses, pause])
    })

  const signOut = (reason = '') => {
    session?.client.close()
    sessionStorage.removeItem(KEY)
    setSession(undefined)
    setPauses([])
    setProblem(reason)
  }

  const signIn = async (token: string) => {
    setIsChecking(true)
    const client = connect(token, wait, signOut)
    const canWrite = await client.canWrite().catch(refusalIn)
    setIsChecking(false)
    if (canWrite instanceof Refusal) return signOut(canWrite.message)
    sessionStorage.setItem(KEY, token)
    setSession({ client, canWrite })
    setProblem('')
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
        {session && (
          <button type="button" onClick={() => signOut()}>
            Sign out
          </button>
        )}
      </header>
      <main>
        {pauses.map((pause) => (
          <PauseNotice {...pause} />
        ))}
        {session ? <Plants {...session} /> : <SignIn isChecking={isChecking} problem={problem} signIn={signIn} />}
      </main>
    </>
  )
}

render(<App />, document.body)
