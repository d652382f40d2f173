// Tested in test/http/page/page-tools.test.ts.
import { useEffect } from 'preact/hooks'
import { closeUpload, open } from './panel.ts'
import { Button, focus, Terms } from './parts.tsx'
import { go, state } from './state.ts'
import { SINGLE_KEYS } from './storage.ts'

const sheet = () => document.querySelector('dialog')
export const showKeys = () => sheet()?.showModal()

/** The keys of the page. The table handles those without a function. The browser closes the sheet at Escape, as any dialog. */
const KEYS: Readonly<Record<string, readonly [does: string, act?: () => void]>> = {
  '/': ['Find a plant', () => focus('[type=search]')],
  n: ['New plant', () => state.canWrite && open('new')],
  '.': ['Next page', () => click('nav [rel=next]')],
  ',': ['Previous page', () => click('nav [rel=prev]')],
  '↑ ↓ Home End Page': ['Go from plant to plant'],
  '← →': ['Go to its buttons'],
  Space: ['Select the plant'],
  Enter: ['Open the plant'],
  Delete: ['Delete the plant'],
  Escape: ['Close what is open', leave],
  '?': ['Show these keys', showKeys],
}

const click = (selector: string) => document.querySelector<HTMLElement>(selector)?.click()

function leave(): void {
  if (state.panel !== undefined) open(undefined)
  else if (state.upload === 'open') closeUpload()
  else if (state.address.filter !== '') go({ filter: '' })
  document.querySelector<HTMLElement>('[type=search]')?.blur()
}

/** In a field only Escape counts, because other keys are text. */
function press(event: KeyboardEvent): void {
  const { key, target, ctrlKey, metaKey, altKey, defaultPrevented, isComposing, keyCode } = event
  const act = KEYS[key]?.[1]
  // Without a modifier some people press them by accident, or by speech (WCAG 2.1.4).
  const isOff = key.length === 1 && !sheet()?.querySelector('input')?.checked
  const isTyping = target instanceof HTMLInputElement && target.type !== 'checkbox' && key !== 'Escape'
  const isForOthers = ctrlKey || metaKey || altKey || defaultPrevented || sheet()?.open
  // An input method composes with these. Safari says so by the number alone.
  if (!act || isOff || isTyping || isForOthers || isComposing || keyCode === 229) return
  event.preventDefault()
  act()
}

/** Listens to the keys while it is shown, and has a sheet of them. */
export function Keys() {
  useEffect(() => {
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
  return (
    <dialog aria-labelledby="keys-title">
      <article>
        <h2 id="keys-title">Keys</h2>
        <label>
          <input
            {...{ type: 'checkbox', role: 'switch', defaultChecked: SINGLE_KEYS.read() ?? true }}
            onChange={({ currentTarget }) => SINGLE_KEYS.write(currentTarget.checked)}
          />
          Keys of one character
        </label>
        <Terms of={Object.entries(KEYS).map(([key, [does]]) => [key, does])} />
        <Button text="Close" onClick={() => sheet()?.close()} />
      </article>
    </dialog>
  )
}
