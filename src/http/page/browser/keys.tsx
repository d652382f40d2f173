import { useEffect, useRef } from 'preact/hooks'
import { Button } from './parts.tsx'

const SHEET = {
  '/': 'Find a plant',
  n: 'New plant',
  '↑ ↓': 'Go from row to row',
  Enter: 'Open the plant of the row',
  Delete: 'Delete the plant of the row',
  Esc: 'Close what is open',
  '?': 'Show these keys',
}

/** Calls a function when its key is pressed. In a field only Escape counts, because other keys are text. */
export function useKeys(actions: Readonly<Record<string, (() => void) | undefined>>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { key, target, ctrlKey, metaKey, altKey, defaultPrevented, isComposing } = event
      const isTyping = target instanceof HTMLInputElement && target.type !== 'checkbox' && key !== 'Escape'
      const isOpen = document.querySelector('dialog[open]') !== null
      if (!actions[key] || isTyping || isOpen || defaultPrevented || isComposing || ctrlKey || metaKey || altKey) return
      event.preventDefault()
      actions[key]()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  })
}

/** The keys of the page. Escape closes the sheet, as the browser does it with every dialog. */
export function KeySheet({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={close}>
      <article>
        <h2 id="keys-title">Keys</h2>
        <dl class="keys">
          {Object.entries(SHEET).map(([key, does]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <Button onClick={() => dialog.current?.close()}>Close</Button>
      </article>
    </dialog>
  )
}
