import { Database } from 'bun:sqlite'
import { describe, expect } from 'bun:test'
import type { Route } from 'playwright-core'
import { startRelay } from '../../support/relay.ts'
import { until } from '../../support/until.ts'
import { HOSTILE_TEXTS, hostile } from '../support/hostile.ts'
import { change, loseAnswer, pageTests, urlOf } from '../support/page.ts'
import { startProxy } from '../support/proxy.ts'

const { testPage, testInChromium } = pageTests()

describe('changes on the page', () => {
  testPage('a delete spares a plant that others change before it or during it, or have deleted', async (begin) => {
    const { service, page, ui } = await begin({ plants: ['Monstera', 'Fern', 'Ivy'] })
    await ui.row(3).waitFor()
    await change(service, 1, 'Ficus')
    await ui.click('Delete plant 1')
    await ui.told('Not deleted, because somebody else has changed it: now it is “Ficus”.')
    await ui.row(1).getByText('Ficus').waitFor()
    const during = await ui.onNext('DELETE', '/plants/2', async (route) => {
      await change(service, 2, 'Lily')
      await route.fallback()
    })
    await ui.click('Delete plant 2')
    await during.done
    await ui.told('Not deleted, because somebody else has changed it: now it is “Lily”.')
    await ui.row(2).getByText('Lily').waitFor()
    await service.delete(3)
    await ui.click('Delete plant 3')
    // The browser may have sent the request twice, so nobody knows whose delete it was.
    await ui.told('“Ivy” is deleted.')

    expect(await page.getByRole('button', { name: /^Undo the delete/ }).count()).toBe(1)
    expect(await service.names()).toEqual(['Ficus', 'Lily'])
  })

  for (const [what, lose, deleted] of [
    ['answers are lost', loseAnswer, '“Fern” (shade) is deleted.'],
    // As to a server that restarts.
    ['requests do not arrive', (route: Route) => route.abort('connectionrefused'), 'Deleted “Fern” (shade).'],
  ] as const)
    testInChromium(`a delete, an undo, an add and an edit whose ${what} are told as done in the end`, async (begin) => {
      const { service, page, ui } = await begin({ plants: [{ id: 1, name: 'Fern', tag: 'shade' }] })
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
      await losing('POST', '/plants', () => ui.click('Undo the delete of plant 1'), 'Restored “Fern” (shade).')
      await ui.deletes(1, '“Fern” (shade)')
      await service.create({ id: 1, name: 'Lily' })
      await page.getByText('Deleted in this tab: 1 plant').click()
      await ui.click('Restore plant 1')
      await ui.told('“Fern” (shade) is not restored. You have a plant with this id already, “Lily”.')
      await ui.row(1).getByText('Lily').waitFor()
      await service.delete(1)
      await ui.click('Restore plant 1')
      await ui.told('Restored “Fern” (shade).')
      await ui.click('New plant')
      await losing('POST', '/plants', () => ui.send({ Id: '2', Name: 'Moss' }), 'Added “Moss”.')
      await ui.row(2).waitFor()
      await ui.click('Edit plant 2')
      await losing('PUT', '/plants/2', () => ui.send({ Name: 'Ivy' }, 'Store the change'), 'Changed to “Ivy”.')

      expect(left).toEqual([])
      expect(await page.getByText('Deleted in this tab').count()).toBe(0)
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
    await repeating('POST /plants', () => ui.send({ Id: '2', Name: 'Moss' }), 'Added “Moss”.')
    await ui.click('Edit plant 2')
    await repeating('PUT /plants/2', () => ui.send({ Name: 'Ivy' }, 'Store the change'), 'Changed to “Ivy”.')
    await repeating('DELETE /plants/1', () => ui.click('Delete plant 1'), '“Fern” (shade) is deleted.')
    await ui.undoes(1, '“Fern” (shade)')

    expect([refused, await said()]).toEqual([['POST 409', 'PUT 412', 'DELETE 404'], []])
    expect(await service.names()).toEqual(['Fern', 'Ivy'])
  })

  testPage(
    'an answer of a proxy in JSON of its own is no answer of the server, and the page tries again',
    async (begin) => {
      const { service, page, ui } = await begin({ plants: ['Fern'], isClosed: true })
      const refused = await ui.onNext('GET', '/plants', (route) =>
        route.fulfill({ status: 503, json: { error: 'upstream unavailable' } }),
      )

      await ui.visit(service)
      await refused.done
      await page.locator('.pause').waitFor()
      await ui.tryNow()
      await ui.row(1).waitFor()

      expect(await page.getByText('upstream').count()).toBe(0)
    },
  )

  testPage('a second click on Delete or Undo does nothing while the server answers the first one', async (begin) => {
    const { requests, ui } = await begin({ plants: ['Fern'] })
    const twice = async (name: string, method: string, path: string) => {
      const slow = await ui.hold(method, path)
      await ui.click(name)
      await slow.begun
      await ui.click(name)
      slow.release()
    }

    await twice('Delete plant 1', 'DELETE', '/plants/1')
    await ui.told('Deleted “Fern”.')
    await twice('Undo the delete of plant 1', 'POST', '/plants')
    await ui.told('Restored “Fern”.')

    expect(requests.filter((request) => /^DELETE .*1$|^POST/.test(request)).length).toBe(2)
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
    await ui.click('Undo')
    await ui.told(`Restored ${HOSTILE_TEXTS - 4} plants.`)

    expect([left, most, sent.length, new Set(sent).size]).toEqual([HOSTILE_TEXTS - 4, 4, HOSTILE_TEXTS, HOSTILE_TEXTS])
    expect(errors).toEqual([])
    expect((await service.list('?include=id')).body).toEqual(plants.slice(4))
  })

  testPage('all deletes of a tab are undone in any order, after a reload and on another page too', async (begin) => {
    const { service, page, ui } = await begin({ plants: 60 })
    const before = await service.list('?include=id')

    for (const id of [1, 2, 3, 4, 5]) await ui.deletes(id, `“Monstera ${id}”${id % 2 ? '' : ' (evergreen)'}`)
    const left = await service.names()
    await ui.undoes(2, '“Monstera 2” (evergreen)')
    await page.reload()
    await page.getByText('Deleted in this tab: 4 plants').click()
    await ui.link('Next').click()
    await ui.row(60).waitFor()
    await ui.click('Restore plant 3')
    await ui.told('Restored “Monstera 3”.')
    await ui.click('Restore all')
    await ui.told('Restored 3 plants.')
    await page.getByText('Deleted in this tab').waitFor({ state: 'detached' })

    expect(left.length).toBe(55)
    expect(await service.list('?include=id')).toMatchObject({ body: before.body })
  })

  testPage('a delete is undone from its notice, and after a reload while it was under way', async (begin) => {
    const { service, page, ui } = await begin({ plants: ['Fern', 'Ivy'], isClosed: true })
    using proxy = startProxy(service)

    await page.goto(urlOf(proxy))
    await ui.signIn(service.token)
    await ui.deletes(1, '“Fern”')
    await page.getByRole('complementary').getByRole('button', { name: 'Undo' }).click()
    await ui.told('Restored “Fern”.')
    const undos = await ui.button('Undo').count()
    for (const [id, isDoneBefore] of [
      [1, true],
      [2, false],
    ] as const) {
      const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const done = Promise.withResolvers<void>()
      proxy.answer(({ method }, ask) => {
        if (method !== 'DELETE') return
        proxy.answer()
        begun.resolve()
        if (isDoneBefore) held.resolve()
        return held.promise.then(ask).finally(done.resolve)
      })
      await ui.click(`Delete plant ${id}`)
      await begun.promise
      if (isDoneBefore) await done.promise
      await page.reload()
      if (!isDoneBefore) {
        await ui.row(id).getByRole('button', { name: 'Delete' }).waitFor()
        held.resolve()
        await done.promise
        await page.reload()
      }
      await page.getByText('Deleted in this tab: 1 plant').waitFor()
      await ui.click(`Undo the delete of plant ${id}`)
      await ui.told(`Restored “${id === 1 ? 'Fern' : 'Ivy'}”.`)
    }

    expect(undos).toBe(0)
    expect(await service.names()).toEqual(['Fern', 'Ivy'])
  })

  testPage('keeps what was typed while the server is busy, or refuses the token for a while', async (begin) => {
    const { service, page, ui } = await begin({ rateLimit: { requests: 60, periodMs: 3_600_000 } })
    const typed = () => Promise.all([ui.field('Id').inputValue(), ui.field('Name').inputValue()])

    // Who types at once must not find the focus elsewhere a frame later.
    await ui.button('Add your first plant').waitFor()
    const focused = await page.evaluate<string>(
      `document.querySelector('.state button').click(), Promise.resolve().then(() => document.activeElement.name)`,
    )
    using lock = new Database(service.database)
    lock.run('pragma busy_timeout = 5000')
    lock.run('begin immediate')
    await ui.send({ Id: '2', Name: 'Moss' })
    await ui.see('The server is too busy, or it is just restarting.')
    const busy = await typed()
    lock.run('rollback')
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
