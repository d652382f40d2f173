import type { Ref } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { formatAddress, useAddress } from './address.ts'
import type { Session } from './client.ts'
import { canEdit, changePlant, UnfinishedEdit } from './edit.tsx'
import type { Plant } from './fields.ts'
import { download, Upload } from './files.tsx'
import { type Garden, type Shared, useGarden } from './garden.ts'
import { KeySheet, useKeys } from './keys.tsx'
import { PlantList } from './list.tsx'
import { useTally } from './listing.ts'
import { countOf, describePlant } from './messages.ts'
import { OnePlant } from './one-plant.tsx'
import { Button, Notices, type Pause } from './parts.tsx'
import { PlantForm } from './plant-form.tsx'

/** The plants of the user, and all that the user can do with them. */
export function Plants({ client, canWrite, pause }: Session & { readonly pause: Pause | undefined }) {
  const [address, go] = useAddress()
  const garden = useGarden(client)
  const tally = useTally({ client, garden })
  const { panel, setPanel, edited, close } = usePanel(garden)
  const addNew = () => setPanel('new')
  const [showsKeys, setShowsKeys] = useState(false)
  const search = useRef<HTMLInputElement>(null)
  const list = useRef('#/')
  const fragment = formatAddress(address)
  if (address.plant === '') list.current = fragment
  // What happened elsewhere is no news here.
  useEffect(() => garden.tell(''), [fragment])
  const [keepsEdits] = useState(canEdit)
  const edit = canWrite && keepsEdits ? setPanel : undefined
  const shared: Shared = { client, canWrite, garden, address, go, edit }
  useKeys({
    '/': () => search.current?.focus(),
    n: canWrite ? addNew : undefined,
    '?': () => setShowsKeys(true),
    Escape() {
      if (panel !== undefined) close()
      else if (address.filter !== '') go({ filter: '', everywhere: false })
      search.current?.blur()
    },
  })
  return (
    <>
      <UnfinishedEdit {...shared} />
      <div class="tools">
        <SearchField field={search} {...shared} />
        {canWrite && <NewButton onClick={addNew} />}
      </div>
      {(panel === 'new' || edited) && (
        <PlantForm
          key={edited}
          {...shared}
          {...{ edited, close }}
          freeId={tally.freeId ?? ''}
          store={storer(shared, edited)}
        />
      )}
      {panel === 'upload' && <Upload {...shared} close={close} />}
      {address.plant === '' && <PlantList {...shared} addFirst={addNew} />}
      {address.plant !== '' && <OnePlant key={address.plant} {...shared} list={list.current} />}
      {canWrite && <Deleted {...garden} />}
      <footer>
        <Tally {...shared} {...tally} />
        <Button onClick={() => garden.attempt(() => download(client, garden.tell))}>Download all</Button>
        {canWrite && <Button onClick={() => setPanel('upload')}>Upload</Button>}
        <Button onClick={() => setShowsKeys(true)}>Keys</Button>
      </footer>
      {canWrite && !edit && <p>This browser stores nothing for this page, so plants cannot be edited here.</p>}
      {showsKeys && <KeySheet close={() => setShowsKeys(false)} />}
      <Notices text={garden.notice} pause={pause} />
    </>
  )
}

/** What is open above the list: a form for a new plant, or for the one that is edited, or the upload. */
function usePanel(garden: Garden) {
  const [panel, setPanel] = useState<'new' | 'upload' | Plant>()
  const edited = typeof panel === 'object' ? panel : undefined
  const close = () => {
    // Another one may be open by now.
    setPanel((now) => (now === panel ? undefined : now))
    if (edited) garden.setFocused(edited.id)
    else focusMain()
  }
  return { panel, setPanel, edited, close }
}

/** The element that had the focus is gone. */
const focusMain = () => document.querySelector('main')?.focus()

/** Returns a function that stores the plant of the form, or returns why nothing has changed. */
const storer =
  ({ client, garden }: Shared, edited: Plant | undefined) =>
  async (plant: Plant): Promise<string | undefined> => {
    if (edited === undefined) return void (await garden.add(plant))
    const changing = garden.whileBusy([edited], () => changePlant(client, { old: edited, new: plant }))
    if (changing === undefined) return 'This plant is being changed at the moment.'
    const problem = await changing.finally(garden.readAgain)
    if (problem !== undefined) return problem
    garden.tell(`Changed to ${describePlant(plant)}.`)
    garden.setFocused(plant.id)
  }

const NewButton = ({ onClick }: { readonly onClick: () => void }) => (
  <Button kind="primary" onClick={onClick}>
    New plant
  </Button>
)

type SearchProps = Shared & { readonly field: Ref<HTMLInputElement> }

const SearchField = ({ field, address, go }: SearchProps) => (
  <input
    ref={field}
    type="search"
    aria-label="Find a plant"
    placeholder="Find a plant"
    value={address.filter}
    onInput={({ currentTarget: { value } }) => go({ plant: '', filter: value }, 'replace')}
    onKeyDown={({ key }) => key === 'Enter' && go({ everywhere: address.filter !== '' })}
  />
)

const Tally = ({ garden, count, countAll }: Shared & ReturnType<typeof useTally>) => (
  <>
    {count !== undefined && <span>{countOf(count)} in all.</span>}
    {countAll && <Button onClick={() => garden.attempt(countAll)}>Count all plants</Button>}
  </>
)

/** The plants that were deleted in this tab. Each can be restored until the tab is closed. */
function Deleted({ deleted, restore }: Garden) {
  if (deleted.length === 0) return null
  return (
    <details>
      <summary>Deleted in this tab: {countOf(deleted.length)}</summary>
      <ul>
        {deleted.map((plant) => (
          <li key={plant}>
            {describePlant(plant)}, id {plant.id}
            <Button label={`Restore plant ${plant.id}`} onClick={() => restore([plant])}>
              Restore
            </Button>
          </li>
        ))}
      </ul>
      <Button onClick={() => restore(deleted)}>Restore all</Button>
    </details>
  )
}
