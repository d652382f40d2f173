import { Picture } from './parts.tsx'

interface SignInProps {
  readonly problem: string
  readonly signIn: (token: string, isKept: boolean) => Promise<void>
}

/** The form for a token, which is never shown. It says what this page is, and how to get a token. */
export const SignIn = ({ problem, signIn }: SignInProps) => (
  <form
    class="sign-in"
    onSubmit={(event) => {
      event.preventDefault()
      const values = new FormData(event.currentTarget)
      void signIn(String(values.get('token')).trim(), values.has('keep'))
    }}
  >
    <Picture />
    <h2>Your plants, in one place</h2>
    <p>Plant Store keeps a list of plants for you. Sign in with your access token to see it and to change it.</p>
    <label for="token">Access token</label>
    <input
      id="token"
      name="token"
      type="password"
      placeholder="plst_…"
      autocomplete="off"
      required
      autofocus
      aria-invalid={problem !== '' || undefined}
      aria-describedby="token-problem token-help"
    />
    <p id="token-problem" role="alert">
      {problem}
    </p>
    <label>
      <input name="keep" type="checkbox" /> Stay signed in on this browser
    </label>
    <button type="submit" class="primary">
      Sign in
    </button>
    <small id="token-help">
      A token begins with <code>plst_</code> and has 54 characters. The operator of this server makes one with{' '}
      <code>plantstore token create --user NAME</code>.
    </small>
    <small>
      Without the tick, only this tab is signed in. With it, all tabs of this browser are, also after a restart. Either
      way the browser keeps the token on its disk until you sign out, even if you close the tab. On a computer of
      others, sign out.
    </small>
  </form>
)
