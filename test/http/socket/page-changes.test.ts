import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { addPlants } from '../../support/many-plants.ts'
import { lacks } from '../../support/requirement.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { BROWSER_TIMEOUT_MS, CHROMIUM } from '../support/browser.ts'
import {
  button,
  change,
  field,
  hold,
  loseAnswer,
  names,
  onNext,
  row,
  send,
  sharedBrowser,
  signIn,
  testPage,
  told,
  tryNow,
  urlOf,
} from '../support/page.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const browser = sharedBrowser()

describe.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('changes on the page, $name', (transport) => {
  testPage('a delete spares a plant that others change before it or during it, or have deleted', async () => {
    await using service = await startService(transport)
    for (const [index, name] of ['Monstera', 'Fern', 'Ivy'].entries()) await service.create({ id: index + 1, name })
    const { page } = await browser.signedIn(service)
    await row(page, 3).waitFor()

    await change(service, 1, 'Ficus')
    await button(page, 'Delete plant 1').click()
    await told(page, 'Not deleted, because somebody else has changed it: now it is “Ficus”.')
    await row(page, 1).getByText('Ficus').waitFor()
    const during = await onNext(page, 'DELETE', '/plants/2', async (route) => {
      await change(service, 2, 'Lily')
      await route.fallback()
    })
    await button(page, 'Delete plant 2').click()
    await during.done
    await told(page, 'Not deleted, because somebody else has changed it: now it is “Lily”.')
    await row(page, 2).getByText('Lily').waitFor()
    await service.delete(3)
    await button(page, 'Delete plant 3').click()
    await told(page, 'Somebody else had deleted “Ivy” already.')
    await row(page, 3).waitFor({ state: 'detached' })

    expect(await page.getByRole('button', { name: /Undo|Restore/ }).count()).toBe(0)
    expect(await service.names()).toEqual(['Ficus', 'Lily'])
  })

  testPage('a delete, an undo and an add whose answers are lost are told as done', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern', tag: 'shade' })
    const { page } = await browser.signedIn(service)
    const losing = async (method: string, path: string, act: () => Promise<void>) => {
      const lost = await onNext(page, method, path, loseAnswer)
      await act()
      await lost.done
      await page.getByText('The server cannot be reached.').waitFor()
      await tryNow(page)
    }

    await losing('DELETE', '/plants/1', () => button(page, 'Delete plant 1').click())
    await told(page, 'Deleted “Fern” (shade).')
    const deleted = await service.names()
    await losing('POST', '/plants', () => button(page, 'Undo the delete of plant 1').click())
    await told(page, 'Restored “Fern” (shade).')
    await button(page, 'Delete plant 1').click()
    await told(page, 'Deleted “Fern” (shade).')
    await service.create({ id: 1, name: 'Lily' })
    await button(page, 'Undo the delete of plant 1').click()
    await told(page, '“Fern” (shade) is not restored. You have a plant with this id already, “Lily”.')
    await row(page, 1).getByText('Lily').waitFor()
    await service.delete(1)
    await page.getByText('Deleted in this tab: 1 plant').click()
    await button(page, 'Restore plant 1').click()
    await told(page, 'Restored “Fern” (shade).')
    await button(page, 'New plant').click()
    await losing('POST', '/plants', () => send(page, { Id: '2', Name: 'Moss' }))
    await told(page, 'Added “Moss”.')

    expect(deleted).toEqual([])
    expect(await page.getByText('Deleted in this tab').count()).toBe(0)
    expect((await service.list('?include=id')).body).toEqual([
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 2, name: 'Moss' },
    ])
  })

  testPage(
    'a delete or an edit that one gives up halfway is finished when one tries again, and loses no plant',
    async () => {
      await using service = await startService(transport)
      for (const [index, name] of ['Fern', 'Ivy'].entries()) await service.create({ id: index + 1, name })
      const { page } = await browser.signedIn(service)

      const lost = await onNext(page, 'DELETE', '/plants/1', loseAnswer)
      await button(page, 'Delete plant 1').click()
      await lost.done
      await button(page, 'Give up').click()
      await told(page, 'The plant may be deleted: try again to see it.')
      await button(page, 'Delete plant 1').click()
      await told(page, 'Deleted “Fern”.')
      await button(page, 'Undo the delete of plant 1').click()
      await told(page, 'Restored “Fern”.')
      await page.route('**/plants', (route) => route.abort())
      await button(page, 'Edit plant 2').click()
      await send(page, { Name: 'Lily' }, 'Store the change')
      // The new plant, then the old one again.
      for (const _ of [1, 2]) await button(page, 'Give up').click()
      await page.getByText('You were changing “Ivy” to “Lily”').waitFor()
      const missing = await service.names()
      await page.unroute('**/plants')
      await button(page, 'Store the change').click()
      await told(page, 'Changed to “Lily”.')
      await page.getByText('You were changing').waitFor({ state: 'detached' })

      expect([missing, await service.names()]).toEqual([['Fern'], ['Fern', 'Lily']])
    },
  )

  testPage('an answer of a proxy in JSON of its own is no answer of the server, and the page tries again', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { page } = await browser.open()
    const refused = await onNext(page, 'GET', '/plants', (route) =>
      route.fulfill({ status: 503, json: { error: 'upstream unavailable' } }),
    )

    await page.goto(urlOf(service))
    await signIn(page, service.token)
    await refused.done
    await tryNow(page)
    await row(page, 1).waitFor()

    expect(await page.getByText('upstream').count()).toBe(0)
  })

  testPage('a second click on Delete or Undo does nothing while the server answers the first one', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { page, requests } = await browser.signedIn(service)
    const twice = async (name: string, method: string, path: string) => {
      const slow = await hold(page, method, path)
      await button(page, name).click()
      await slow.begun
      await button(page, name).click()
      slow.release()
    }

    await twice('Delete plant 1', 'DELETE', '/plants/1')
    await told(page, 'Deleted “Fern”.')
    await twice('Undo the delete of plant 1', 'POST', '/plants')
    await told(page, 'Restored “Fern”.')

    expect(requests.filter((request) => /^DELETE .*1$|^POST/.test(request)).length).toBe(2)
  })

  testPage('all deletes of a tab are undone in any order, after a reload and on another page too', async () => {
    await using service = await startService(transport)
    addPlants(service.database, 60)
    const { page } = await browser.signedIn(service)
    const before = await service.list('?include=id')

    for (const id of [1, 2, 3, 4, 5]) {
      await button(page, `Delete plant ${id}`).click()
      await told(page, `Deleted “Monstera ${id}”`)
    }
    const left = await service.names()
    await button(page, 'Undo the delete of plant 2').click()
    await told(page, 'Restored “Monstera 2” (evergreen).')
    await page.reload()
    await page.getByText('Deleted in this tab: 4 plants').click()
    await button(page, 'Next').click()
    await row(page, 60).waitFor()
    await button(page, 'Restore plant 3').click()
    await told(page, 'Restored “Monstera 3”.')
    await button(page, 'Restore all').click()
    await told(page, 'Restored 3 plants.')
    await page.getByText('Deleted in this tab').waitFor({ state: 'detached' })

    expect(left.length).toBe(55)
    expect(await service.list('?include=id')).toMatchObject({ body: before.body })
  })

  testPage('keeps what was typed while it is offline, is refused for a while, or the server is busy', async () => {
    await using service = await startService(transport, { rateLimit: { requests: 60, periodMs: 3_600_000 } })
    const { page } = await browser.signedIn(service)
    const typed = () => Promise.all([field(page, 'Id').inputValue(), field(page, 'Name').inputValue()])

    await button(page, 'Add your first plant').click()
    await page.context().setOffline(true)
    await send(page, { Id: '1', Name: 'Fern' })
    await page.getByText('The server cannot be reached.').waitFor()
    await page.getByText('Next try in').waitFor()
    const offline = await typed()
    await page.context().setOffline(false)
    await tryNow(page)
    await told(page, 'Added “Fern”.')

    const lock = new Database(service.database)
    lock.run('pragma busy_timeout = 5000')
    lock.run('begin immediate')
    await send(page, { Id: '2', Name: 'Moss' })
    await page.getByText('The server is too busy, or it is just restarting.').waitFor()
    const busy = await typed()
    lock.run('rollback')
    lock.close()
    await told(page, 'Added “Moss”.')
    await row(page, 2).waitFor()

    let sent = 0
    while ((await service.list('?limit=0')).status === 200) sent++
    await send(page, { Id: '3', Name: 'Aloe' })
    await page.getByText('The server takes no more requests from this token for a while.').waitFor()
    await page.getByText(/^Next try in 3[0-9]{3} s\.$/).waitFor()
    await button(page, 'Give up').click()
    await page.getByRole('form').getByText('The server takes no more requests').waitFor()
    const refused = await typed()

    expect(sent).toBeLessThan(60)
    expect(await page.getByText('Added “Moss”.').count()).toBe(0)
    expect(await page.locator('[aria-invalid]').count()).toBe(0)
    expect([offline, busy, refused]).toEqual([
      ['1', 'Fern'],
      ['2', 'Moss'],
      ['3', 'Aloe'],
    ])
    const { text: other } = await service.createToken()
    expect(await service.names(other)).toEqual(['Fern', 'Moss'])
  })
})

test.skipIf(lacks(CHROMIUM))(
  'what is sent while the server restarts happens once the server is back',
  async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = { current: await serve(database), [Symbol.asyncDispose]: () => server.current.kill() }
    const { page } = await browser.open()
    const { url, port } = server.current
    /** Does something while the server is away, and waits until the page tells that it has happened. */
    const away = async (act: () => Promise<void>, text: string) => {
      await server.current.end()
      await act()
      await page.getByText('The server cannot be reached.').waitFor()
      const typed = await field(page, 'Name').inputValue()
      server.current = await serve(database, ['--listen', `127.0.0.1:${port}`])
      await tryNow(page)
      await told(page, text)
      return typed
    }

    await page.goto(url)
    await signIn(page, token)
    await button(page, 'New plant').click()
    const typed = await away(() => send(page, { Id: '1', Name: 'Fern' }), 'Added “Fern”.')
    await row(page, 1).waitFor()
    await away(() => button(page, 'Delete plant 1').click(), 'Deleted “Fern”.')
    await away(() => button(page, 'Undo the delete of plant 1').click(), 'Restored “Fern”.')
    await button(page, 'Edit plant 1').click()
    await away(() => send(page, { Name: 'Moss' }, 'Store the change'), 'Changed to “Moss”.')
    await row(page, 1).getByText('Moss').waitFor()

    expect([typed, await names(page)]).toEqual(['Fern', ['Moss']])
    expect(await (await server.current.request('GET', '/plants', { token })).json()).toEqual([{ name: 'Moss' }])
  },
  BROWSER_TIMEOUT_MS,
)
