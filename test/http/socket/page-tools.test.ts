import { describe, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { addPlants } from '../../support/many-plants.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { CHROMIUM } from '../support/browser.ts'
import {
  button,
  change,
  downloaded,
  field,
  hold,
  names,
  onNext,
  row,
  search,
  send,
  sharedBrowser,
  signIn,
  stored,
  testPage,
  told,
  urlOf,
} from '../support/page.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const browser = sharedBrowser()

describe.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('tools of the page, $name', (transport) => {
  testPage('up to 500 plants are counted and a free id is suggested, and more when one asks', async () => {
    await using service = await startService(transport)
    const { text: rich } = await service.createToken({ user: 'rich' })
    addPlants(service.database, 499, { user: 'me' })
    addPlants(service.database, 1001, { user: 'rich' })
    const { page } = await browser.signedIn(service)
    const { page: other } = await browser.signedIn(service, { token: rich, screen: {} })
    const suggested = (page: Page) => field(page, 'Id').inputValue()

    await page.getByText('499 plants in all.').waitFor()
    await button(page, 'New plant').click()
    const free = await suggested(page)
    await send(page, { Id: '9223372036854775807', Name: 'Last' })
    await page.getByText('500 plants in all.').waitFor()
    await button(page, 'Delete plant 1').click()
    await page.getByText('499 plants in all.').waitFor()
    await button(other, 'New plant').click()
    const unknown = await suggested(other)
    await button(other, 'Count all plants').click()
    await other.getByText('1,001 plants in all.').waitFor()
    const asked = await suggested(other)
    await send(other, { Name: 'Next' })
    await button(other, 'Count all plants').waitFor()

    expect([free, unknown, asked]).toEqual(['500', '', '1002'])
    expect([await suggested(page), await suggested(other)]).toEqual(['500', '1003'])
  })

  testPage('a search reads all pages, shows up to 500 plants, can be stopped, and goes on after a 429', async () => {
    await using service = await startService(transport)
    addPlants(service.database, 1200)
    const { page } = await browser.signedIn(service)

    await row(page, 50).waitFor()
    await search(page).fill('ERA 11')
    const slow = await hold(page, 'GET', '/plants')
    await button(page, 'Search all pages').click()
    await slow.begun
    await page.getByText('Searching all pages: 0 plants with “ERA 11” among 0 so far.').waitFor()
    const limited = await onNext(page, 'GET', '/plants', (route) =>
      route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: { error: 42901, message: 'no more' } }),
    )
    slow.release()
    await limited.done
    await page.getByText('On all pages: 111 plants with “ERA 11” among 1,200.').waitFor()
    const found = await names(page)
    await search(page).fill('monstera')
    await page.getByText('The first 500 plants with “monstera” among 1,000. There may be more').waitFor()
    const most = await names(page)
    const endless = await hold(page, 'GET', '/plants')
    await search(page).fill('era 1200')
    await endless.begun
    await button(page, 'Stop').click()
    endless.release()
    await page.getByText('The search is stopped: 0 plants with “era 1200” among 0.').waitFor()
    await button(page, 'Show all').click()
    await row(page, 50).waitFor()

    expect(found).toEqual(
      Array.from({ length: 1200 }, (_, at) => `Monstera ${at + 1}`).filter((name) => /a 11/.test(name)),
    )
    expect(most.length).toBe(500)
  })

  testPage('an upload of a download adds each plant, and gives a result for each line', async () => {
    await using service = await startService(transport)
    const plants = [
      { id: '-9223372036854775808', name: 'Fern "10"', tag: 'shade' },
      { id: '9007199254740993', name: 'מרווה' },
    ]
    const lines = plants.map(({ id, ...others }) => `{"id":${id},${JSON.stringify(others).slice(1)}\n`)
    for (const line of lines) await service.create(line)
    const { page } = await browser.signedIn(service)
    const results = page.locator('.results li')

    const path = await downloaded(page)
    const content = await Bun.file(path).text()
    await service.delete('9007199254740993')
    await button(page, 'Upload').click()
    await page.getByLabel('A file with a plant in each line').setInputFiles({
      name: 'plants.jsonl',
      mimeType: 'application/jsonl',
      buffer: Buffer.from(`${content}\nFern\n{"id":7}`),
    })
    await page.getByText('Done: 1 plant added, 3 refused.').waitFor()
    await row(page, '9007199254740993').waitFor()

    expect(content).toBe(lines.join(''))
    expect(await results.allTextContents()).toEqual([
      'Line 1: You have a plant with this id already, “Fern "10"” (shade).',
      'Line 2: added.',
      'Line 4: This is no plant. A plant is written like {"id":1,"name":"Fern"}.',
      expect.stringContaining('Line 5: The server refused this. It says: “name” is required and must be'),
    ])
    expect((await service.list('?include=id')).text).toBe(`[${lines.join(',').replaceAll('\n', '')}]`)
  })

  testPage('a plant is copied as JSON and as a command for curl, which does not show the token', async () => {
    await using service = await startService(transport)
    const json = `{"id":9007199254740993,"name":"Moe's \\"Fern\\" $HOME","tag":"\\\\"}`
    await service.create(json)
    const { page } = await browser.signedIn(service, { screen: { permissions: ['clipboard-read', 'clipboard-write'] } })
    const copied = () => page.evaluate<string>('navigator.clipboard.readText()')

    await row(page, '9007199254740993').getByRole('link').click()
    await button(page, 'Copy JSON').click()
    await button(page, 'Copied').waitFor()
    const first = await copied()
    await button(page, 'Copy curl').click()
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

  testPage('a list sorts what it shows, filters by a tag, and deletes what is selected of that', async () => {
    await using service = await startService(transport)
    for (const [id, name, tag] of [
      [1, 'Fern 10', 'shade'],
      [2, 'Aloe', 'sun'],
      [3, 'Fern 20', 'shade'],
      [-4, 'Moss', 'shade'],
    ]) {
      await service.create({ id, name, tag })
    }
    const { page } = await browser.signedIn(service)
    const order = (name: string) => page.getByRole('columnheader', { name }).getAttribute('aria-sort')
    const seen: unknown[] = []
    const look = async (name: string) => seen.push([await order(name), ...(await names(page))])

    await row(page, 3).waitFor()
    for (const name of ['Name', 'Name', 'Name', 'Id']) {
      await button(page, name).click()
      await look(name)
    }
    await row(page, 1).getByRole('button', { name: 'shade' }).click()
    const filter = await search(page).inputValue()
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    await page.getByText('3 plants selected.').waitFor()
    await page.getByRole('checkbox', { name: 'Select plant -4' }).uncheck()
    await button(page, 'Delete selected').click()
    await told(page, 'Deleted 2 plants.')

    expect(seen).toEqual([
      ['ascending', 'Aloe', 'Fern 10', 'Fern 20', 'Moss'],
      ['descending', 'Moss', 'Fern 20', 'Fern 10', 'Aloe'],
      [null, 'Moss', 'Fern 10', 'Aloe', 'Fern 20'],
      ['ascending', 'Moss', 'Fern 10', 'Aloe', 'Fern 20'],
    ])
    expect(filter).toBe('shade')
    expect(await service.names()).toEqual(['Moss', 'Aloe'])
  })

  testPage('an edit keeps both plants in the tab until it is done, and spares what others change', async () => {
    await using service = await startService(transport, { maxBodyBytes: 200 })
    await service.create({ id: 1, name: 'Fren', tag: 'shade' })
    await service.create({ id: 2, name: 'Ivy' })
    const { page } = await browser.signedIn(service)
    let kept = ''
    const deleting = await onNext(page, 'DELETE', '/plants/1', async (route) => {
      ;[kept] = await stored(page)
      await route.fallback()
    })

    await button(page, 'Edit plant 1').click()
    await page.getByText('While the change is stored, others see the plant missing for a moment.').waitFor()
    const isFixed = await field(page, 'Id').isEditable()
    await send(page, { Name: 'Fern' }, 'Store the change')
    await deleting.done
    await told(page, 'Changed to “Fern” (shade).')
    const [after] = await stored(page)
    await button(page, 'Edit plant 2').click()
    await send(page, { Name: 'Ivy '.repeat(60) }, 'Store the change')
    await page.getByText('Make its texts shorter. The plant is as it was.').waitFor()
    await change(service, 2, 'Lily')
    await send(page, { Name: 'Ivies' }, 'Store the change')
    await page.getByText('Somebody else has changed this plant, so nothing was changed. It is “Lily” now.').waitFor()
    await row(page, 2).getByText('Lily').waitFor()

    expect(isFixed).toBe(false)
    expect(kept).toContain(
      JSON.stringify('{"old":{"id":"1","name":"Fren","tag":"shade"},"new":{"id":"1","name":"Fern","tag":"shade"}}'),
    )
    expect(after).not.toContain('Fren')
    expect((await service.list('?include=id')).body).toEqual([
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 2, name: 'Lily' },
    ])
    expect(JSON.stringify(await stored(page))).not.toContain('Ivy')
  })

  testPage('an edit that a reload interrupts is finished, or the old plant is stored again', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fren' })
    const { page } = await browser.signedIn(service)

    for (const [name, expected] of [
      ['Keep the old plant', 'Fren'],
      ['Finish', 'Fern'],
    ] as const) {
      const creating = await onNext(page, 'POST', '/plants', (route) => route.abort())
      await button(page, 'Edit plant 1').click()
      await send(page, { Name: 'Fern' }, 'Store the change')
      await creating.done
      const missing = await service.names()
      await page.reload()
      await page.getByRole('alert').getByText('You were changing “Fren” to “Fern”, and that is not finished').waitFor()
      await button(page, name).click()
      await told(page, `“${expected}” is stored.`)
      await row(page, 1).getByText(expected).waitFor()
      expect([missing, await service.names()]).toEqual([[], [expected]])
    }

    expect(await page.getByText('You were changing').count()).toBe(0)
    expect(JSON.stringify(await stored(page))).not.toContain('Fren')
  })

  testPage('an unfinished edit waits for its token, and the next user of the tab does not find it', async () => {
    await using service = await startService(transport)
    const { text: token, id } = await service.createToken()
    const { text: other } = await service.createToken({ user: 'other' })
    await service.create({ id: 1, name: 'Fren' })
    const { page } = await browser.signedIn(service, { token })
    const creating = await onNext(page, 'POST', '/plants', (route) => route.abort())
    await button(page, 'Edit plant 1').click()
    await send(page, { Name: 'Fern' }, 'Store the change')
    await creating.done

    const returning = await onNext(page, 'DELETE', '/plants/none', (route) => route.abort())
    await page.reload()
    await returning.done
    await button(page, 'Give up').click()
    await signIn(page, token)
    await page.getByText('You were changing “Fren” to “Fern”').waitFor()
    await service.store.revokeTokens({ id }, Date.now())
    await until('the token is refused', async () => (await service.list('', { token })).status !== 200)
    await page.reload()
    await page.getByRole('alert').getByText('The change of “Fren”, id 1, is not finished: it may be missing.').waitFor()
    await signIn(page, other)
    await page.getByText('You have no plants yet.').waitFor()

    expect(await page.getByText('Fren').count()).toBe(0)
    expect(JSON.stringify(await stored(page))).not.toContain('Fren')
  })

  testPage('edits no plant where the browser stores nothing, and says so', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { page } = await browser.open()
    await page.addInitScript('Storage.prototype.setItem = () => { throw new Error("no room") }')

    await page.goto(urlOf(service))
    await signIn(page, service.token)
    await page.getByText('This browser stores nothing for this page, so plants cannot be edited here.').waitFor()
    await button(page, 'Delete plant 1').click()
    await button(page, 'Undo the delete of plant 1').click()
    await told(page, 'Restored “Fern”.')

    expect(await page.getByRole('button', { name: /Edit/ }).count()).toBe(0)
    expect(await service.names()).toEqual(['Fern'])
  })
})
