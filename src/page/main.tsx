// Tested in test/http/socket/page.test.ts.
import { type ComponentChild, h, options, render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { grant } from './client.ts'
import { download } from './files.ts'
import { Keys, showKeys } from './keys.tsx'
import { PlantList } from './list.tsx'
import { OnePlant } from './one-plant.tsx'
import { hasTyped, open } from './panel.ts'
import { Button, focus, Notices, Picture, readAgain, refresh } from './parts.tsx'
import { PlantForm } from './plant-form.tsx'
import { returnToSession, SignIn, signOut } from './sign-in.tsx'
import { go, isChanging, set, start, state } from './state.ts'
import { Selection } from './table.tsx'
import { Upload } from './upload.tsx'

/** The page: the form for a token, or the plants of its user. */
function App() {
  const [{ canWrite, isReturning, user }, draw] = useState(state)
  useEffect(() => {
    start(draw)
    addEventListener('beforeunload', (event) => (isChanging() || hasTyped()) && event.preventDefault())
    document.addEventListener('visibilitychange', readAgain)
    returnToSession()
  }, [])
  const docs = document.querySelector<HTMLLinkElement>('link[rel=help]')
  const isSignedIn = canWrite !== undefined
  return (
    <>
      <button type="button" class="skip" onClick={() => focus('main')}>
        Skip to the plants
      </button>
      <header>
        <Picture />
        <h1>Plant Store</h1>
        {docs && <a href={docs.href}>API</a>}
        {isSignedIn && (
          <span class="user">
            <bdi>{grant?.name || user}</bdi>
            {!canWrite && ', read only'}
          </span>
        )}
        {(isSignedIn || isReturning) && <Button text="Sign out" kind="quiet" onClick={signOut} />}
      </header>
      <main tabIndex={-1}>
        {isSignedIn && <Plants />}
        {!isSignedIn && isReturning && <p class="state">One moment…</p>}
        {!isSignedIn && !isReturning && <SignIn />}
        <Notices>{isSignedIn && <Selection />}</Notices>
      </main>
    </>
  )
}

/** The plants of the user, and all that the user can do with them. */
function Plants() {
  const { address, canWrite, panel, upload } = state
  const edited = typeof panel === 'object' ? panel : undefined
  return (
    <>
      <div class="tools">
        <input
          {...{ type: 'search', 'aria-label': 'Find a plant', placeholder: 'Find a plant', value: address.filter }}
          onInput={({ currentTarget }) => go({ plant: '', filter: currentTarget.value })}
        />
        {canWrite && <Button text="New plant" kind="primary" onClick={() => open('new')} />}
        <Button text="Refresh" kind="quiet" onClick={refresh} />
        <details>
          <summary>Download</summary>
          <p>
            <Button text="CSV, for spreadsheets" kind="quiet" onClick={() => download('csv')} />
            <Button text="JSON Lines, for programs" kind="quiet" onClick={() => download('jsonl')} />
          </p>
        </details>
        {canWrite && <Button text="Upload" kind="quiet" onClick={() => set({ upload: state.upload ?? 'open' })} />}
        <Button text="Keys" kind="quiet" onClick={showKeys} />
      </div>
      {canWrite && panel && <PlantForm key={edited?.id} edited={edited} />}
      {upload && <Upload />}
      {address.plant === '' ? <PlantList /> : <OnePlant key={address.plant} />}
      <Keys />
    </>
  )
}

/** Their texts change, unless they have a label. */
const CHANGING: readonly unknown[] = ['bdi', 'button', 'p', 'span']

/**
 * A browser that translates puts elements of its own in the place of texts, and Preact would change the texts that are gone. So
 * each text that changes is in an element that is replaced with it. Around that the focus and what is read aloud stay.
 */
options.vnode = ({ type, key, props }) => {
  if (!CHANGING.includes(type) || ('aria-label' in props && props['aria-label']) || key === props.children) return
  const wrap = (child: ComponentChild) =>
    typeof child === 'string' && child.trim() !== '' ? h('span', { key: child }, child) : child
  props.children = Array.isArray(props.children) ? props.children.map(wrap) : wrap(props.children)
}

/** A mistake of this page may have stopped all that it draws, so its words stand in an element of their own. */
function confess(): void {
  const place = document.querySelector('.mistake') ?? document.body.appendChild(document.createElement('div'))
  place.className = 'notices mistake'
  const words = 'This page has made a mistake, so it may show what is no longer true. The text in the form is kept.'
  render(
    <p role="alert">{[words, <Button key="" text="Load the page again" onClick={() => location.reload()} />]}</p>,
    place,
  )
}

document.body.replaceChildren()
addEventListener('error', confess)
addEventListener('unhandledrejection', confess)
render(<App />, document.body)
