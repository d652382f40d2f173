import { expect } from 'bun:test'
import { addPlants } from '../../support/many-plants.ts'
import { pageTests, urlOf } from '../support/page.ts'
import { looksAt, screensFor } from '../support/screens.ts'

const { testInChromium } = pageTests()

const MINUTE_MS = 60_000

/** Those that `page.test.ts` does not pass through. */
for (const screen of screensFor('1280 px, light'))
  testInChromium(
    `states of the page have nothing that axe-core finds, at ${screen.name}`,
    async (begin) => {
      const { service, page, ui } = await begin({ plants: ['Fern', 'Ivy', 'Moss'], screen, isClosed: true })
      const { look, problems } = looksAt(page, screen)
      const { text: read } = await service.createToken({ scope: 'read', expiresAtMs: Date.now() + 4 * MINUTE_MS })
      /** Looks while the first such request that an act sends waits. */
      const lookDuring = async (
        moment: string,
        request: string,
        act: () => Promise<unknown>,
        sign: string | RegExp,
      ) => {
        const [method = '', path = ''] = request.split(' ')
        const slow = await ui.hold(method, path)
        await act()
        await slow.begun
        await ui.see(sign)
        await look(moment)
        slow.release()
      }

      await page.goto(urlOf(service))
      await ui.click('Show the token')
      await look('the token shown')
      await lookDuring('loading', 'GET /plants', () => ui.signIn(read), 'Loading your plants…')
      await page.getByRole('alert').getByText('This token ends').waitFor()
      await ui.row(3).waitFor()
      await look('read only, and the token ends')
      await page.route('**/plants?*', (route) => route.abort())
      await page.reload()
      await ui.see('The server cannot be reached.')
      await look('pause')
      await ui.click('Give up')
      await ui.button('Try again').waitFor()
      await look('failed')
      await page.unrouteAll()
      await ui.click('Sign out')

      await ui.signIn(service.token)
      await ui.row(3).waitFor()
      await ui.newPlant()
      await look('new plant')
      await ui.send({ Name: ' ' })
      await ui.see('Give the plant a name')
      await look('new plant without a name')
      await lookDuring('storing', 'PUT /plants/4', () => ui.send({ Name: 'Aloe' }), 'Storing…')
      await ui.told('Added “Aloe”.')
      await ui.click('Close')
      await ui.click('Upload')
      await look('upload')
      const choose = () => ui.choose('{"id":1,"name":"Fern"}\n{"id":2,"name":"Oak"}\n{"id":5,"name":"Yew"}\n')
      await lookDuring('comparing', 'GET /plants', choose, 'Reading: 0 %.')
      await ui.see('Compared: 1 new, 1 changed, 1 equal, 0 refused.')
      await look('compared')
      await lookDuring('uploading', 'PUT /plants/5', () => ui.click('Add 1 plant'), 'Storing: 0 added')
      await ui.see('Done: 1 added, 0 replaced, 0 refused.')
      await ui.row(5).waitFor()
      await look('uploaded')
      await page.locator('.upload').getByRole('button', { name: 'Close' }).click()
      await page.getByText('Download', { exact: true }).click()
      await look('the kinds of a download')
      await lookDuring(
        'downloading',
        'GET /plants',
        () => ui.click('JSON Lines, for programs'),
        'Downloaded 0 plants so far.',
      )
      await page.getByRole('checkbox', { name: 'Select all' }).check()
      await lookDuring('deleting', 'DELETE /plants/1', () => ui.click('Delete selected'), /^Deleted \d of 5 plants\.$/)
      await ui.told('Deleted 5 plants.')
      await lookDuring(
        'loading a plant',
        'GET /plants/6',
        () => page.goto(`${urlOf(service)}#/plants/6`),
        'Loading the plant…',
      )
      await ui.see('You have no plant with this id.')
      await look('no plant')
      addPlants(service.database, 60)
      await page.goto(urlOf(service))
      await ui.row(50).waitFor()
      await lookDuring('turning the page', 'GET /plants', () => ui.link('Next').click(), 'Page 1')
      await lookDuring('searching', 'GET /plants', () => ui.search().fill('era 6'), 'Stop searching')

      expect(problems).toEqual([])
    },
    { isLong: true },
  )
