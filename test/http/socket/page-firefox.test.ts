import { expect } from 'bun:test'
import { FIREFOX } from '../support/browser.ts'
import { pageTests } from '../support/page.ts'

const { testPage } = pageTests()

/** What `bun run check` tries in Firefox. `bun run check:long page` tries the rest in it, too. */
testPage(
  'signs in, adds, changes, deletes, restores and uploads plants, and signs out',
  async (begin) => {
    const { service, page, errors, violations, ui } = await begin({ plants: ['Fern'] })

    await ui.row(1).waitFor()
    await ui.newPlant()
    await ui.send({ Name: 'Moss', 'Tag (optional)': 'shade' })
    await ui.told('Added “Moss” (shade).')
    await ui.click('Close')
    await ui.click('Edit plant 2')
    await ui.send({ Name: 'Ivy' }, 'Store the change')
    await ui.told('Changed to “Ivy” (shade).')
    await ui.deletes(1, '“Fern”')
    const left = await service.names()
    await ui.undoes('“Fern”')
    await ui.click('Upload')
    await ui.choose('id,name,tag\n1,Fern,\n9007199254740993,מרווה,sun\n')
    await ui.see('Compared: 1 new, 0 changed, 1 equal, 0 refused.')
    await ui.click('Add 1 plant')
    await ui.see('Done: 1 added, 0 replaced, 0 refused.')
    const violated = await violations()
    await ui.click('Sign out')
    await page.getByLabel('Access token').waitFor()

    expect(left).toEqual(['Ivy'])
    expect((await service.list('?include=id')).text).toBe(
      '[{"id":1,"name":"Fern"},{"id":2,"name":"Ivy","tag":"shade"},{"id":9007199254740993,"name":"מרווה","tag":"sun"}]',
    )
    expect([errors, violated, await ui.stored()]).toEqual([[], [], ['{}', '{}']])
  },
  { browsers: [FIREFOX] },
)
