import { expect } from 'bun:test'
import { CHROMIUM, FIREFOX } from '../support/browser.ts'
import { pageTests, withoutRefusals } from '../support/page.ts'
import { TOO_NEW, WITHOUT_TOO_NEW } from '../support/too-new.ts'

const { testPage } = pageTests()

/** What `bun run check` tries in Firefox. `bun run check:long page` tries the rest in it, too. */
for (const [where, driven, script, told] of [
  ['in Firefox', FIREFOX, '', ''],
  ['without what the oldest browsers lack', CHROMIUM, WITHOUT_TOO_NEW, ''],
  [
    'where the browser stores nothing',
    CHROMIUM,
    'Storage.prototype.setItem = () => { throw new Error("no room") }',
    'This browser keeps nothing of this page: after a reload, sign in again.',
  ],
] as const)
  testPage(
    `signs in, adds, changes, ticks, deletes, restores, searches and uploads plants, and signs out, ${where}`,
    async (begin) => {
      const { service, page, errors, violations, ui } = await begin({ plants: ['Fern'], isClosed: true })
      await page.addInitScript(script)

      await ui.visit(service)
      await ui.row(1).waitFor()
      const warning = await ui.status().textContent()
      const lacking = await page.evaluate<boolean>(
        '!("union" in Set.prototype || "withResolvers" in Promise || "checkVisibility" in document.body)',
      )
      await ui.newPlant()
      await ui.send({ Name: 'Moss', 'Tag (optional)': 'shade' })
      await ui.told('Added “Moss” (shade).')
      await ui.click('Close')
      await ui.click('Edit plant 2')
      await ui.send({ Name: 'Ivy' }, 'Store the change')
      await ui.told('Changed to “Ivy” (shade).')
      await ui.row(2).focus()
      for (const key of ['ArrowUp', 'Space']) await page.keyboard.press(key)
      await ui.see('1 plant selected.')
      await ui.click('Delete selected')
      await ui.told('Deleted “Fern”.')
      await ui.search().fill('ivy')
      await ui.row(2).waitFor()
      await ui.search().fill('')
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

      expect(TOO_NEW).toContainEqual(['Set', 'union'])
      expect([left, lacking, warning]).toEqual([['Ivy'], script === WITHOUT_TOO_NEW, told])
      expect((await service.list('?include=id')).text).toBe(
        '[{"id":1,"name":"Fern"},{"id":2,"name":"Ivy","tag":"shade"},{"id":9007199254740993,"name":"מרווה","tag":"sun"}]',
      )
      expect([withoutRefusals(errors), violated, await ui.stored()]).toEqual([[], [], ['{}', '{}']])
    },
    { browsers: [driven] },
  )
