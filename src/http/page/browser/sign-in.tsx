interface Props {
  readonly isChecking: boolean
  readonly problem: string
  readonly signIn: (token: string) => Promise<void>
}

/** The form for a token, which is never shown. */
export const SignIn = ({ isChecking, problem, signIn }: Props) => (
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
    <button type="submit" aria-busy={isChecking}>
      Sign in
    </button>
    <small>The operator of this server makes tokens. This tab keeps yours until you sign out or close the tab.</small>
  </form>
)
