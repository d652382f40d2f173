import { describe, expect } from 'bun:test'
import type { Route } from 'playwright-core'
import { startRelay } from '../../support/relay.ts'
import { until } from '../../support/until.ts'
import { HOSTILE_TEXTS, hostile } from '../support/hostile.ts'
import { change, loseAnswer, pageTests, urlOf } from '../support/page.ts'

const { testPage, testInChromium } = pageTests()

describe('changes on the page', () => {
  testPage('a delete spares a plant that others change before it or during it, or have deleted', async (begin) => {
    const { service, ui } = await begin({ plants: ['Monstera', 'Fern', 'Ivy'] })
    await ui.row(3).waitFor()
    await change(service, 1, 'Ficus')
    await ui.click('Delete plant 1')
    await ui.told('Not deleted, because somebody else has changed it: now it is “Ficus”.')
    await ui.row(1).getByText('Ficus').waitFor()
    // What was done before a click could show before it, and take the button away.
    const deletesDuring = async (id: number, act: () => Promise<unknown>) => {
      const { done } = await ui.before('DELETE', `/plants/${id}`, act)
      await Promise.all([ui.click(`Delete plant ${id}`), done])
    }
    await deletesDuring(2, () => change(service, 2, 'Lily'))
    await ui.told('Not deleted, because somebody else has changed it: now it is “Lily”.')
    await ui.row(2).getByText('Lily').waitFor()
    await deletesDuring(3, () => service.delete(3))
    // The browser may have sent the request twice, so nobody knows whose delete it was.
    await ui.told('“Ivy” is deleted.')

    // Nor does Undo hold what was not deleted.
    await ui.undoes('“Ivy”')
    expect(await service.names()).toEqual(['Ficus', 'Lily', 'Ivy'])
  })

  for (const [what, lose, deleted] of [
    ['answers are lost', loseAnswer, '“Fern” (shade) is deleted.'],
    // As to a server that restarts.
    ['requests do not arrive', (route: Route) => route.abort('connectionrefused'), 'Deleted “Fern” (shade).'],
  ] as const)
    testInChromium(`a delete, an undo, an add and an edit whose ${what} are told as done in the end`, async (begin) => {
      const { service, ui } = await begin({ plants: [{ id: 1, name: 'Fern', tag: 'shade' }] })
      const losing = async (method: string, path: string, act: () => Promise<void>, text: string) => {
        const lost = await ui.onNext(method, path, lose)
        await act()
        await lost.done
        await ui.see('The server cannot be reached.')
        await ui.tryNow()
        await ui.told(text)
      }

      await losing('DELETE', '/plants/1', () => ui.click('Delete plant 1'), deleted)
      const left = await service.names()
      await losing('PUT', '/plants/1', () => ui.undo().click(), 'Restored “Fern” (shade).')
      await ui.deletes(1, '“Fern” (shade)')
      await service.create({ id: 1, name: 'Lily' })
      await ui.undo().click()
      await ui.told('“Fern” (shade) is not restored: its id has “Lily” now.')
      await ui.row(1).getByText('Lily').waitFor()
      await service.delete(1)
      await ui.undoes('“Fern” (shade)')
      await ui.click('New plant')
      await losing('PUT', '/plants/2', () => ui.send({ Id: '2', Name: 'Moss' }), 'Added “Moss”.')
      await ui.row(2).waitFor()
      await ui.click('Edit plant 2')
      await losing('PUT', '/plants/2', () => ui.send({ Name: 'Ivy' }, 'Store the change'), 'Changed to “Ivy”.')

      expect(left).toEqual([])
      expect(await ui.undo().count()).toBe(0)
      expect((await service.list('?include=id')).body).toEqual([
        { id: 1, name: 'Fern', tag: 'shade' },
        { id: 2, name: 'Ivy' },
      ])
    })

  testPage('what the server has done is told as done if the browser repeats the request by itself', async (begin) => {
    const { service, page, ui } = await begin({ plants: [{ id: 1, name: 'Fern', tag: 'shade' }], isClosed: true })
    using relay = startRelay({ hostname: '127.0.0.1', port: service.port })
    const refused: string[] = []
    page.on('response', (response) => {
      if (!response.ok()) refused.push(`${response.request().method()} ${response.status()}`)
    })
    const said = await ui.recordTexts(['cannot be reached'])
    /** Resets the connection of a request once the server has answered it. Chromium repeats that on another connection. */
    const repeating = async (request: string, act: () => Promise<void>, text: string) => {
      const countLost = relay.loseAnswerTo(`${request} HTTP/1.1`)
      await act()
      await ui.told(text)
      expect(countLost()).toBe(1)
    }

    await page.goto(urlOf(relay))
    await ui.signIn(service.token)
    await ui.click('New plant')
    await repeating('PUT /plants/2', () => ui.send({ Id: '2', Name: 'Moss' }), 'Added “Moss”.')
    await ui.click('Edit plant 2')
    await repeating('PUT /plants/2', () => ui.send({ Name: 'Ivy' }, 'Store the change'), 'Changed to “Ivy”.')
    await repeating('DELETE /plants/1', () => ui.click('Delete plant 1'), '“Fern” (shade) is deleted.')
    await ui.undoes('“Fern” (shade)')

    expect([refused, await said()]).toEqual([['PUT 412', 'PUT 412', 'DELETE 404'], []])
    expect(await service.names()).toEqual(['Fern', 'Ivy'])
  })

  testPage('a delete is one request a plant, four at a time, which one can stop', async (begin) => {
    const plants = Array.from({ length: HOSTILE_TEXTS }, (_, index) => ({ id: index + 1, ...hostile(index) }))
    const { service, page, requests, errors, ui } = await begin({ plants })
    const held = Promise.withResolvers<void>()
    let [underWay, most, begun] = [0, 0, 0]
    await page.route('**/plants/*', async (route) => {
      if (route.request().method() !== 'DELETE') return route.continue()
      begun++
      most = Math.max(most, ++underWay)
      await held.promise
      await route.fulfill({ response: await route.fetch() })
      underWay--
    })
    const deleteAll = async () => {
      await page.getByRole('checkbox', { name: 'Select all' }).check()
      await ui.click('Delete selected')
    }

    await ui.row(1).waitFor()
    const before = requests.length
    await deleteAll()
    await until('the first requests are under way', () => begun === 4)
    await ui.see(`Deleted 0 of ${HOSTILE_TEXTS} plants.`)
    await ui.click('Stop')
    held.resolve()
    await ui.told(`Deleted 4 plants. Stopped. Not tried: ${HOSTILE_TEXTS - 4} plants.`)
    const left = (await service.names()).length
    await deleteAll()
    await ui.told(`Deleted ${HOSTILE_TEXTS - 4} plants.`)
    const sent = requests.slice(before).filter((each) => /plants\//.test(each))
    const reads = requests.slice(before).filter((each) => /limit=50/.test(each))
    const suggested = await ui.newPlant()
    await ui.undoes(`${HOSTILE_TEXTS} plants`)

    expect(suggested).toBe(`${HOSTILE_TEXTS + 1}`)
    expect([reads.length, left, most]).toEqual([2, HOSTILE_TEXTS - 4, 4])
    expect([sent.length, new Set(sent).size]).toEqual([HOSTILE_TEXTS, HOSTILE_TEXTS])
    expect(errors).toEqual([])
    expect((await service.list('?include=id')).body).toEqual(plants)
  })

  testPage('rows vanish with the answer, one read follows, and Undo holds all deletes of the tab', async (begin) => {
    const { service, page, requests, ui } = await begin({ plants: 103 })
    const before = await service.list('?include=id')
    const sent = () => requests.splice(0).map((each) => each.replace(/http:.*?\d\//, ''))
    const focusedRow = (id: string) => until(`row ${id} has the focus`, async () => (await ui.focusedRow()) === id)
    const topOf = async (id: number) => (await ui.row(id).boundingBox())?.y

    await ui.row(50).waitFor()
    sent()
    await ui.row(30).focus()
    const top = await topOf(30)
    const list = await ui.hold('GET', '/plants')
    await page.keyboard.press('Delete')
    await list.begun
    await ui.row(30).waitFor({ state: 'detached' })
    // The list was not read again yet.
    const atOnce = [await ui.focusedRow(), (await ui.names()).length, await topOf(31)]
    list.release()
    await ui.row(51).waitFor()
    const requested = sent()
    await page.keyboard.press('Delete')
    // A key that is held repeats, and deletes one plant.
    for (let down = 0; down < 3; down++) await page.keyboard.down('Delete')
    await page.keyboard.up('Delete')
    await focusedRow('33')
    await ui.row(53).waitFor()
    // A second click at once is none for the row that has come under the pointer.
    await ui.button('Delete plant 34').dblclick()
    await ui.row(54).waitFor()
    const left = (await service.list('?include=id')).text.match(/\d+(?=,"name")/g)

    await ui.link('Next').click()
    await ui.row(103).press('Delete')
    await ui.row(103).waitFor({ state: 'detached' })
    await focusedRow('102')
    await ui.click('Refresh')
    await ui.search().fill('era 10')
    await ui.see('On all pages: 4 plants with “era 10” among 98.')
    await ui.click('Show all')
    await ui.row(102).waitFor()
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    await ui.click('Delete selected')
    await ui.told('Deleted 48 plants.')
    // The page is empty now, so the one before shows.
    await focusedRow('54')
    await ui.undoes('53 plants')
    await ui.row(30).waitFor()

    expect(atOnce).toEqual(['31', 49, top])
    expect(requested).toEqual(['DELETE plants/30', 'GET plants?limit=50&include=id'])
    expect(left?.slice(28, 32)).toEqual(['29', '33', '35', '36'])
    expect(await service.list('?include=id')).toMatchObject({ body: before.body })
    expect(await ui.undo().count()).toBe(0)
  })

  testPage('keeps what was typed while the server is busy, or refuses the token for a while', async (begin) => {
    const { service, page, ui } = await begin({ rateLimit: { requests: 60, periodMs: 3_600_000 } })
    const typed = () => Promise.all([ui.field('Id').inputValue(), ui.field('Name').inputValue()])

    // Who types at once must not find the focus elsewhere a frame later.
    await ui.button('Add your first plant').waitFor()
    const focused = await page.evaluate<string>(
      `document.querySelector('.state button').click(), Promise.resolve().then(() => document.activeElement.name)`,
    )
    await ui.onNext('PUT', '/plants/2', (route) => route.fulfill({ status: 503, json: { error: 50303, message: '' } }))
    await ui.send({ Id: '2', Name: 'Moss' })
    await ui.see('The server is too busy, or it is just restarting.')
    const busy = await typed()
    await ui.tryNow()
    await ui.told('Added “Moss”.')
    await ui.row(2).waitFor()
    let sent = 0
    while (sent < 60 && (await service.list('?limit=0')).status === 200) sent++
    await ui.send({ Id: '3', Name: 'Aloe' })
    await ui.see('The server takes no more requests from this token for a while.')
    await ui.see(/^Next try in 3[0-9]{3} s\.$/)
    await ui.click('Give up')
    await page.getByRole('form').getByText('The server takes no more requests').waitFor()

    expect(focused).toMatch(/^(id|name)$/)
    expect(sent).toBeLessThan(60)
    expect([busy, await typed()]).toEqual([
      ['2', 'Moss'],
      ['3', 'Aloe'],
    ])
    expect(await page.getByText('Added “Moss”.').count()).toBe(0)
    expect(await page.locator('[aria-invalid]').count()).toBe(0)
    const { text: other } = await service.createToken()
    expect(await service.names(other)).toEqual(['Moss'])
  })
})
