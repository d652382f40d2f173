import { describe, expect } from 'bun:test'
import { addPlants } from '../../support/many-plants.ts'
import { until } from '../../support/until.ts'
import { change, pageTests, urlOf } from '../support/page.ts'

const { testPage } = pageTests()

describe('tools of the page', () => {
  testPage('an id is suggested whatever plants there are, and an add is one request', async (begin) => {
    const largest = '9223372036854775807'
    const { service, page, requests, ui } = await begin()
    const seen: unknown[] = []
    /** Opens the page and the form, and returns how many requests the form sends. */
    const suggests = async () => {
      await page.reload()
      await page.locator('tr[data-id], .state .picture').first().waitFor()
      const before = requests.length
      seen.push(await ui.newPlant())
      return requests.length - before
    }
    const create = async (id: string | number) => {
      expect(await service.create(`{"id":${id},"name":"Plant ${id}"}`)).toMatchObject({ status: 200 })
    }
    const later = (id: number) =>
      until('the next id is suggested', async () => (await ui.field('Id').inputValue()) === `${id}`)

    // A reload before the browser has the token would ask for it again.
    await ui.see('You have no plants yet.')
    await suggests()
    for (const id of [-5, 0, 3, '9007199254740993', '9223372036854775806', largest]) {
      await create(id)
      await suggests()
    }
    for (const id of [-5, 0, 3, '9007199254740993', '9223372036854775806', largest]) await service.delete(id)
    addPlants(service.database, 1200)
    const looks = [await suggests()]
    const before = requests.length
    await ui.send({ Name: 'Fern' })
    await ui.told('Added “Fern”.')
    await later(1202)
    const sent = requests.slice(before)
    // Behind each step there are plants.
    for (let at = 50; at < 50 * 2 ** 33; at = 2 * (at + 20) + 1)
      for (let id = at + 1; id <= at + 20; id++) if (id > 1201) await create(id)
    looks.push(await suggests())
    await ui.send({ Name: 'Ivy' })
    await ui.see('You have a plant with this id already, “Monstera 51”. Take the next one.')
    await later(52)

    expect(seen).toEqual(['1', '1', '1', '4', '9007199254740994', largest, '1', '1201', '51'])
    expect(looks).toEqual([11, 32])
    expect(sent.map((each) => each.split(' ')[0])).toEqual(['PUT', 'GET'])
  })

  testPage(
    'a search reads ten pages by itself and the rest when one asks, narrows its hits, can be stopped, and goes on after a 429',
    async (begin) => {
      const { service, page, requests, ui } = await begin({ plants: 10_500 })
      /** How many pages behind a first one were read. */
      const searched = () => requests.filter((request) => /limit=1000.*after=/.test(request)).length
      const seen: unknown[] = []
      const expected: unknown[] = []
      /** Waits for a text, beside so many rows, after so many pages that were searched. */
      const see = async (...wanted: readonly [text: string, rows: number, searched: number]) => {
        expected.push(wanted)
        await page.getByText(wanted[0], { exact: true }).waitFor()
        seen.push([wanted[0], (await ui.names()).length, searched()])
      }
      await ui.row(50).waitFor()
      const limited = await ui.onNext('GET', '/plants', (route) =>
        route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: { error: 42901, message: 'no more' } }),
      )
      const slow = await ui.hold('GET', '/plants')
      await ui.search().fill('ERA 104')
      await slow.begun
      await see('On this page, plants with “ERA 104”:', 0, 0)
      slow.release()
      await limited.done
      await see('11 plants with “ERA 104” among 10,000 so far.', 11, 9)
      await ui.click('Edit plant 104')
      await ui.send({ Name: 'Aloe' }, 'Store the change')
      await see('10 plants with “ERA 104” so far.', 10, 9)
      // What changes is applied to the hits, which nothing reads again.
      await ui.click('Delete plant 1040')
      await see('9 plants with “ERA 104” so far.', 9, 9)
      await ui.newPlant()
      await ui.send({ Id: '0', Name: 'Era 104' })
      await see('10 plants with “ERA 104” so far.', 10, 9)
      await ui.click('Close')
      await ui.undo().click()
      await see('11 plants with “ERA 104” so far.', 11, 9)
      await ui.search().fill('era 1045')
      await see('1 plant with “era 1045” so far.', 1, 9)
      await ui.click('Search the rest')
      await see('On all pages: 11 plants with “era 1045”.', 11, 10)
      await ui.search().fill('era 10459')
      await see('On all pages: 1 plant with “era 10459”.', 1, 10)
      await ui.search().fill('monstera')
      await see(
        'The first 500 plants with “monstera” among 1,000. There may be more: search for a longer text.',
        500,
        10,
      )
      const endless = await ui.hold('GET', '/plants')
      await ui.search().fill('era 9')
      await endless.begun
      const next = await ui.hold('GET', '/plants')
      await ui.search().fill('era 99')
      await next.begun
      await ui.click('Stop searching')
      endless.release()
      next.release()
      await ui.click('Search the rest')
      await see('On all pages: 111 plants with “era 99” among 10,501.', 111, 20)
      await ui.click('Show all')
      await ui.see('50 plants, ids 0 to 49 of 10,501')
      // The hits of the page that is shown stay until the search has one itself.
      await page.goto(`${urlOf(service)}#/?after=1050&page=22`)
      await ui.row(1075).waitFor()
      const first = await ui.hold('GET', '/plants')
      await ui.search().fill('era 1075')
      await first.begun
      const second = await ui.hold('GET', '/plants')
      first.release()
      await second.begun
      await see('On this page, plants with “era 1075”:', 1, 21)
      second.release()
      await see('1 plant with “era 1075” among 10,000 so far.', 1, 29)

      expect(seen).toEqual(expected)
    },
  )

  testPage('a tag filters the list, and what is selected of it is deleted', async (begin) => {
    const tag = 'shade'
    const shady = [10, 20, -4].map((id) => ({ id, name: `Fern ${id}`, tag }))
    const { service, page, ui } = await begin({
      plants: [...shady, ...Array.from({ length: 50 }, (_, at) => ({ id: 100 + at, name: 'Ivy' }))],
    })

    await ui.row(10).waitFor()
    const search = await ui.hold('GET', '/plants')
    await ui.row(10).getByRole('button', { name: tag }).click()
    const filter = await ui.search().inputValue()
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    search.release()
    await ui.see('On all pages: 3 plants with “shade” among 53.')
    await ui.see('3 plants selected.')
    await page.getByRole('checkbox', { name: 'Select plant -4' }).uncheck()
    await ui.click('Delete selected')
    await ui.told('Deleted 2 plants.')

    expect(filter).toBe(tag)
    expect((await service.names()).slice(0, 3)).toEqual(['Fern -4', 'Ivy', 'Ivy'])
  })

  testPage('an edit shows what others make of the plant, and is stored all the same or dropped', async (begin) => {
    const { service, page, ui } = await begin({
      maxBody: 200,
      plants: [{ id: 1, name: 'Fren', tag: 'shade' }, 'Ivy', 'Moss'],
    })
    const seen: unknown[] = []
    /** What is told of the plant as it is now, beside what was typed. */
    const look = async (name: string) => {
      await page.getByRole('form').getByText(`it is “${name}”`).waitFor()
      const typed = ['Name', 'Tag (optional)'].map((each) => ui.field(each).inputValue())
      seen.push([await page.getByRole('form').getByRole('alert').textContent(), ...(await Promise.all(typed))])
    }
    const stale = (name: string) =>
      `This plant has changed since you opened it: now it is “${name}”. Your change is not stored.`

    await ui.click('Edit plant 1')
    await ui.see('The id of a plant does not change.')
    const isFixed = await ui.field('Id').isEditable()
    await ui.send({ Name: 'Fern '.repeat(60) }, 'Store the change')
    await ui.see('Make its texts shorter.')
    await change(service, 1, 'Frond')
    await ui.send({ Name: 'Fern' }, 'Store the change')
    await ui.see(stale('Frond'))
    // Who presses Enter once more stores nothing.
    await page.keyboard.press('Enter')
    await look('Frond')
    const { done } = await ui.before('PUT', '/plants/1', () => change(service, 1, 'Lily'))
    await Promise.all([ui.click('Store the change'), done])
    await look('Lily')
    await ui.click('Store the change')
    await ui.told('Changed to “Fern”.')
    await until('the plant has the focus', async () => (await ui.focusedRow()) === '1')
    await ui.click('Edit plant 2')
    await service.delete(2)
    await ui.send({ Name: 'Ivies' }, 'Store the change')
    await ui.told('This plant is deleted. Your change is not stored.')
    await ui.click('Add')
    await ui.told('Added “Ivies”.')
    await ui.click('Close')
    await ui.click('Edit plant 3')
    await change(service, 3, 'Aloe')
    await ui.send({ Name: 'Mosses' }, 'Store the change')
    await ui.see(stale('Aloe'))
    await ui.click('Close')
    await ui.row(3).getByText('Aloe').waitFor()

    expect([isFixed, await page.getByRole('form').count()]).toEqual([false, 0])
    expect(seen).toEqual([
      [stale('Frond'), 'Fern', ''],
      [stale('Lily'), 'Fern', ''],
    ])
    expect(await service.names()).toEqual(['Fern', 'Ivies', 'Aloe'])
  })

  testPage(
    'an edit offers the tags of the list, and leaves what nobody has touched, line breaks included',
    async (begin) => {
      const { service, page, ui } = await begin({
        plants: [
          { id: 1, name: 'two\r\nlines', tag: 'old' },
          { id: 2, name: 'Fern', tag: '\na\rb' },
          { id: 3, name: ' \n', tag: 'sun' },
          { id: 4, name: 'Ivy', tag: '' },
        ],
      })

      await ui.click('Edit plant 1')
      const offered = await page.evaluate<unknown>(
        '[...document.forms[0].elements].map(({ list }) => list && [...list.options].map(({ value }) => value))',
      )
      for (const [id, typed, told] of [
        [1, { 'Tag (optional)': 'new' }, 'Changed to “two lines” (new).'],
        [2, { Name: 'Moss' }, 'Changed to “Moss” ( a b).'],
        [3, { 'Tag (optional)': '' }, 'Changed to “(invisible text)”.'],
        [4, { Name: 'Lily' }, 'Changed to “Lily”.'],
      ] as const) {
        // Nobody has typed in the form that is open, so no question is asked.
        for (const each of [1, id]) await ui.click(`Edit plant ${each}`)
        await ui.send(typed, 'Store the change')
        await ui.told(told)
        await page.getByRole('form').waitFor({ state: 'detached' })
      }

      expect(offered).toEqual([null, null, ['old', '\na\rb', 'sun', ''], undefined, undefined])
      expect((await service.list('?include=id')).body).toEqual([
        { id: 1, name: 'two\r\nlines', tag: 'new' },
        { id: 2, name: 'Moss', tag: '\na\rb' },
        { id: 3, name: ' \n' },
        { id: 4, name: 'Lily', tag: '' },
      ])
    },
  )

  testPage('says in words that it has made a mistake, and keeps what is typed', async (begin) => {
    const { page, ui } = await begin()
    page.on('dialog', (dialog) => dialog.accept())

    await ui.newPlant()
    await ui.field('Name').fill('Moss')
    await page.evaluate('JSON.stringify = () => { throw new Error("a bug") }')
    await ui.click('Add')
    await page.getByRole('alert').getByText('This page has made a mistake').waitFor()
    await ui.click('Load the page again')
    await page.getByRole('alert').getByText('This page has made').waitFor({ state: 'detached' })
    await page.getByRole('form').waitFor()

    expect(await ui.field('Name').inputValue()).toBe('Moss')
  })
})
