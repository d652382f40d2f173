import { describe, expect } from 'bun:test'
import { addPlants } from '../../support/many-plants.ts'
import { until } from '../../support/until.ts'
import { change, pageTests } from '../support/page.ts'

const { open, testPage } = pageTests()

describe('tools of the page', () => {
  testPage('up to 500 plants are counted and a free id is suggested, and more when one asks', async (begin) => {
    const { service, ui } = await begin({ plants: 499 })
    const { text: rich } = await service.createToken({ user: 'rich' })
    addPlants(service.database, 1001, { user: 'rich' })
    const { ui: other } = await open({})
    await other.visit(service, rich)
    const suggested = (ui: typeof other) => ui.field('Id').inputValue()

    await ui.see('499 plants in all.')
    await ui.click('New plant')
    const free = await suggested(ui)
    await ui.send({ Id: '9223372036854775807', Name: 'Last' })
    await ui.see('500 plants in all.')
    await ui.click('Delete plant 1')
    await ui.see('499 plants in all.')
    await other.click('New plant')
    const unknown = await suggested(other)
    await other.click('Count all plants')
    await other.see('1,001 plants in all.')
    const asked = await suggested(other)
    await other.send({ Name: 'Next' })
    await other.button('Count all plants').waitFor()

    expect([free, unknown, asked]).toEqual(['500', '', '1002'])
    expect([await suggested(ui), await suggested(other)]).toEqual(['500', '1003'])
  })

  testPage(
    'a search reads all pages, shows up to 500 plants, can be stopped, and goes on after a 429',
    async (begin) => {
      const { ui } = await begin({ plants: 1200 })
      await ui.row(50).waitFor()
      await ui.search().fill('ERA 11')
      const slow = await ui.hold('GET', '/plants')
      await ui.click('Search all pages')
      await slow.begun
      await ui.see('Searching all pages: 0 plants with “ERA 11” among 0 so far.')
      const limited = await ui.onNext('GET', '/plants', (route) =>
        route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: { error: 42901, message: 'no more' } }),
      )
      slow.release()
      await limited.done
      await ui.see('On all pages: 111 plants with “ERA 11” among 1,200.')
      const found = await ui.names()
      await ui.search().fill('monstera')
      await ui.see('The first 500 plants with “monstera” among 1,000. There may be more')
      const most = await ui.names()
      const endless = await ui.hold('GET', '/plants')
      await ui.search().fill('era 1200')
      await endless.begun
      await ui.click('Stop')
      endless.release()
      await ui.see('The search is stopped: 0 plants with “era 1200” among 0.')
      await ui.click('Show all')
      await ui.row(50).waitFor()

      expect(found).toEqual(
        Array.from({ length: 1200 }, (_, at) => `Monstera ${at + 1}`).filter((name) => /a 11/.test(name)),
      )
      expect(most.length).toBe(500)
    },
  )

  testPage('an upload of a download adds each plant, and gives a result for each line', async (begin) => {
    const plants = [
      '{"id":-9223372036854775808,"name":"Fern 10","tag":"shade"}',
      '{"id":9007199254740993,"name":"מרווה"}',
    ]
    const { service, page, ui } = await begin({ plants })
    const results = page.locator('.results li')

    const content = await Bun.file(await ui.downloaded()).text()
    await service.delete('9007199254740993')
    await ui.click('Upload')
    const choose = (buffer: Buffer) =>
      page
        .getByLabel('A file with a plant in each line')
        .setInputFiles({ name: 'plants.jsonl', mimeType: 'application/jsonl', buffer })
    await choose(Buffer.from('{"id":8,"name":"Caf\xe9"}\n', 'latin1'))
    await ui.see('Added 0 plants: the file is not UTF-8 behind line 0, so convert it.')
    await choose(Buffer.from(`\ufeff${content}\nFern\n{"id":7}\n \t\r\n`))
    await ui.see('Done: 1 plant added, 3 refused.')
    await ui.row('9007199254740993').waitFor()

    expect(content).toBe(`${plants.join('\n')}\n`)
    expect(await results.allTextContents()).toEqual([
      'Line 1: You have a plant with this id already, “Fern 10” (shade).',
      'Line 2: added.',
      'Line 4: This is no plant. A plant is written like {"id":1,"name":"Fern"}.',
      expect.stringContaining('Line 5: The server refused this. It says: “name” is required and must be'),
    ])
    expect((await service.list('?include=id')).text).toBe(`[${plants.join()}]`)
  })

  testPage('a plant is copied as JSON and as a command for curl, which does not show the token', async (begin) => {
    const json = `{"id":9007199254740993,"name":"Moe's \\"Fern\\" $HOME","tag":"\\\\"}`
    const screen = { permissions: ['clipboard-read', 'clipboard-write'] }
    const { service, page, ui } = await begin({ plants: [json], screen })
    const copied = () => page.evaluate<string>('navigator.clipboard.readText()')

    await ui.row('9007199254740993').getByRole('link').click()
    await ui.click('Copy JSON')
    await ui.button('Copied').waitFor()
    const first = await copied()
    await ui.click('Copy curl')
    await page.getByRole('button', { name: 'Copied' }).nth(1).waitFor()
    const command = await copied()
    await service.delete('9007199254740993')
    const exitCode = await Bun.spawn(['sh', '-c', `${command} --silent`], {
      env: { ...process.env, TOKEN: service.token },
    }).exited

    expect([first, exitCode]).toEqual([json, 0])
    expect(command).not.toContain(service.token)
    expect((await service.list('?include=id')).text).toBe(`[${json}]`)
  })

  testPage('a list sorts what it shows, filters by a tag, and deletes what is selected of that', async (begin) => {
    const tag = 'shade'
    const ferns = [10, 20].map((id) => ({ id, name: `Fern ${id}`, tag }))
    const { service, page, ui } = await begin({
      plants: [...ferns, { id: 15, name: 'Aloe', tag: 'sun' }, { id: -4, name: 'Moss', tag }],
    })
    const order = (name: string) => page.getByRole('columnheader', { name }).getAttribute('aria-sort')
    const seen: unknown[] = []
    const look = async (name: string) => seen.push([await order(name), ...(await ui.names())])

    await ui.row(20).waitFor()
    for (const name of ['Name', 'Name', 'Name', 'Id']) {
      await ui.click(name)
      await look(name)
    }
    await ui.row(10).getByRole('button', { name: 'shade' }).click()
    const filter = await ui.search().inputValue()
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    await ui.see('3 plants selected.')
    await page.getByRole('checkbox', { name: 'Select plant -4' }).uncheck()
    await ui.click('Delete selected')
    await ui.told('Deleted 2 plants.')

    expect(seen).toEqual([
      ['ascending', 'Aloe', 'Fern 10', 'Fern 20', 'Moss'],
      ['descending', 'Moss', 'Fern 20', 'Fern 10', 'Aloe'],
      [null, 'Moss', 'Fern 10', 'Aloe', 'Fern 20'],
      ['ascending', 'Moss', 'Fern 10', 'Aloe', 'Fern 20'],
    ])
    expect(filter).toBe('shade')
    expect(await service.names()).toEqual(['Moss', 'Aloe'])
  })

  testPage('an edit keeps both plants in the tab until it is done, and spares what others change', async (begin) => {
    const { service, ui } = await begin({
      maxBodyBytes: 200,
      plants: [{ id: 1, name: 'Fren', tag: 'shade' }, 'Ivy'],
    })
    let kept = ''
    const deleting = await ui.onNext('DELETE', '/plants/1', async (route) => {
      ;[kept] = await ui.stored()
      await route.fallback()
    })

    await ui.click('Edit plant 1')
    await ui.see('While the change is stored, others see the plant missing for a moment.')
    await ui.see('The id of a plant does not change.')
    const isFixed = await ui.field('Id').isEditable()
    await ui.send({ Name: 'Fern' }, 'Store the change')
    await deleting.done
    await ui.told('Changed to “Fern” (shade).')
    await until('the plant has the focus', async () => (await ui.focusedRow()) === '1')
    const [after] = await ui.stored()
    await ui.click('Edit plant 2')
    await ui.send({ Name: 'Ivy '.repeat(60) }, 'Store the change')
    await ui.see('Make its texts shorter. The plant is as it was.')
    await change(service, 2, 'Lily')
    await ui.send({ Name: 'Ivies' }, 'Store the change')
    await ui.see('Somebody else has changed this plant, so nothing was changed. It is “Lily” now.')
    await ui.row(2).getByText('Lily').waitFor()

    expect(isFixed).toBe(false)
    expect(kept).toContain(
      JSON.stringify('{"old":{"id":"1","name":"Fren","tag":"shade"},"new":{"id":"1","name":"Fern","tag":"shade"}}'),
    )
    expect(after).not.toContain('Fren')
    expect((await service.list('?include=id')).body).toEqual([
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 2, name: 'Lily' },
    ])
    expect(JSON.stringify(await ui.stored())).not.toContain('Ivy')
  })

  testPage('an edit that a reload interrupts is finished, or the old plant is stored again', async (begin) => {
    const { service, page, ui } = await begin({ plants: ['Fren'] })
    for (const [name, expected] of [
      ['Keep the old plant', 'Fren'],
      ['Finish', 'Fern'],
    ] as const) {
      const creating = await ui.onNext('POST', '/plants', (route) => route.abort())
      await ui.click('Edit plant 1')
      await ui.send({ Name: 'Fern' }, 'Store the change')
      await creating.done
      const missing = await service.names()
      await page.reload()
      await page.getByRole('alert').getByText('You were changing “Fren” to “Fern”, and that is not finished').waitFor()
      await ui.click(name)
      await ui.told(`“${expected}” is stored.`)
      await ui.row(1).getByText(expected).waitFor()
      expect([missing, await service.names()]).toEqual([[], [expected]])
    }

    expect(await page.getByText('You were changing').count()).toBe(0)
    expect(JSON.stringify(await ui.stored())).not.toContain('Fren')
  })

  testPage('an unfinished edit waits for its token, and the next user of the tab does not find it', async (begin) => {
    const { service, page, ui } = await begin({ plants: ['Fren'], isClosed: true })
    const { text: token, id } = await service.createToken()
    const { text: other } = await service.createToken({ user: 'other' })
    await ui.visit(service, token)
    const creating = await ui.onNext('POST', '/plants', (route) => route.abort())
    await ui.click('Edit plant 1')
    await ui.send({ Name: 'Fern' }, 'Store the change')
    await creating.done

    const returning = await ui.onNext('DELETE', '/plants/none', (route) => route.abort())
    await page.reload()
    await returning.done
    await ui.click('Give up')
    await ui.signIn(token)
    await ui.see('You were changing “Fren” to “Fern”')
    await service.store.revokeTokens({ id }, Date.now())
    await until('the token is refused', async () => (await service.list('', { token })).status !== 200)
    await page.reload()
    await page.getByRole('alert').getByText('The change of “Fren”, id 1, is not finished: it may be missing.').waitFor()
    await ui.signIn(other)
    await ui.see('You have no plants yet.')

    expect(await page.getByText('Fren').count()).toBe(0)
    expect(JSON.stringify(await ui.stored())).not.toContain('Fren')
  })

  testPage('edits no plant where the browser stores nothing, and says so', async (begin) => {
    const { service, page, ui } = await begin({ plants: ['Fern'], isClosed: true })
    await page.addInitScript('Storage.prototype.setItem = () => { throw new Error("no room") }')

    await ui.visit(service)
    await ui.see('This browser stores nothing for this page, so plants cannot be edited here.')
    await ui.click('Delete plant 1')
    await ui.undoes(1, '“Fern”')

    expect(await page.getByRole('button', { name: /Edit/ }).count()).toBe(0)
    expect(await service.names()).toEqual(['Fern'])
  })
})
