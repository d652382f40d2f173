import { describe, expect } from 'bun:test'
import { PLANT_FILES } from '../../support/plant-files.ts'
import { until } from '../../support/until.ts'
import { change, pageTests, urlOf } from '../support/page.ts'
import { startProxy } from '../support/proxy.ts'

const { testPage, testInChromium } = pageTests()

describe('an upload', () => {
  testInChromium('tells of each line what import would, and stores nothing before somebody says so', async (begin) => {
    const plants = ['{"id":-9223372036854775808,"name":"Fern 10"}', '{"id":9007199254740993,"name":"מרווה","tag":""}']
    const { service, ui } = await begin({ plants })
    const content = await Bun.file(await ui.downloaded()).text()
    const none = 'Compared: 0 new, 0 changed, 0 equal,'
    /** A file, and what is said of it. */
    const files: readonly (readonly [text: string | Buffer, ...said: readonly string[]])[] = [
      [
        `\ufeff${content}\n{"id":5,"name":"Oak"}\n{"id":9007199254740993,"name":"Moss"}`,
        'Compared: 1 new, 0 changed, 2 equal, 1 refused.',
        'Line 5: its id is that of line 2.',
      ],
      [
        `${' '.repeat(394_241)}\n{"id":5,"name":"Moss"}`,
        `${none} 1 refused.`,
        'Line 1: it is longer than 394240 bytes, so nothing behind it was read.',
      ],
      [Buffer.from(`${'{"id":5}\n'.repeat(9000)}Caf\xe9\n`, 'latin1'), 'Stopped: 0 added, 0 replaced, 0 refused.'],
    ]
    const seen: unknown[] = []
    await ui.click('Upload')
    for (const [text] of files) {
      await ui.choose(text)
      seen.push([text, ...(await ui.uploaded())])
    }
    await ui.told('Nothing was stored. The file is not UTF-8: save it as UTF-8.')
    for (const [text] of PLANT_FILES) {
      await ui.choose(text)
      seen.push([text, ...(await ui.uploaded()).slice(1)])
    }

    const refused = PLANT_FILES.map(([text, lines]) => [
      text,
      ...Object.entries(lines).flatMap(([at, line]) =>
        typeof line === 'string' ? [`Line ${at}: ${line.replace(/`(.*?)`/g, '“$1”')}`] : [],
      ),
    ])
    expect(seen).toEqual([...files, ...refused])
    expect((await service.list('?include=id')).text).toBe(`[${plants.join()}]`)
  })

  testInChromium('stores what a spreadsheet has changed, but not over changes of others', async (begin) => {
    const plants = [
      '{"id":1,"name":"Fern","tag":"a"}',
      '{"id":2,"name":"\u00e4 \\"x\\";"}',
      '{"id":3,"name":"Ivy","tag":""}',
    ]
    const screen = { viewport: { width: 1280, height: 720 }, locale: 'de-DE' }
    const { service, ui } = await begin({ plants: [...plants, '{"id":4,"name":"Moss"}', 'Oak'], screen })
    const saved = Buffer.from(await Bun.file(await ui.downloaded('CSV, for spreadsheets')).bytes()).toString()
    const sheet = saved.replace('Fern', 'Farn').replace('Moss', 'Moos').replace('5;Oak;\n', '').replaceAll('\n', '\r\n')
    const seen: unknown[] = []
    /** Chooses a file, presses a button once somebody else has done something, and tells what the page says. */
    const upload = async (text: string, button: string, meanwhile = async () => {}) => {
      await ui.choose(text)
      seen.push(...(await ui.uploaded()))
      await meanwhile()
      await ui.click(button)
      seen.push(...(await ui.uploaded()))
    }

    await ui.click('Upload')
    await upload(sheet, 'Replace 2', () => change(service, 4, 'Mold'))
    await upload(
      `${sheet}6;Yew;\r\n7;Elm;`,
      'Add 2 plants',
      async () => void (await service.create({ id: 7, name: 'Ash' })),
    )
    await upload(sheet, 'Replace 1')

    expect(saved).toBe('\ufeffid;name;tag\n1;Fern;a\n2;"\u00e4 ""x"";";\n3;Ivy;\n4;Moss;\n5;Oak;\n')
    expect(seen).toEqual([
      'Compared: 0 new, 2 changed, 2 equal, 0 refused.',
      'Line 2: “Fern” (a) becomes “Farn” (a).',
      'Line 5: “Moss” becomes “Moos”.',
      'Done: 0 added, 1 replaced, 1 refused.',
      'Line 5: somebody has changed this plant meanwhile: now it is “Mold”.',
      'Compared: 2 new, 1 changed, 3 equal, 0 refused.',
      'Line 5: “Mold” becomes “Moos”.',
      'Done: 1 added, 0 replaced, 1 refused.',
      'Line 7: somebody has changed this plant meanwhile: now it is “Ash”.',
      'Compared: 0 new, 1 changed, 3 equal, 0 refused.',
      'Line 5: “Mold” becomes “Moos”.',
      'Done: 0 added, 1 replaced, 0 refused.',
    ])
    expect(await service.names()).toEqual(['Farn', '\u00e4 "x";', 'Ivy', 'Moos', 'Oak', 'Yew', 'Ash'])
  })

  testInChromium('holds up no browser with 100,000 refused lines, shows 500 and saves all', async (begin) => {
    const { service, page, ui } = await begin({})
    /** Chooses a file that the page makes, because Playwright would hold it up with a large one. */
    const choose = (count: number) =>
      page.evaluate(`{
          const files = new DataTransfer()
          files.items.add(new File(['id,name\\n', 'x,Fern\\n'.repeat(${count}), 'x,"two\\n""lines"""'], 'plants.csv'))
          const input = Object.assign(document.querySelector('[type=file]'), { files: files.files })
          input.dispatchEvent(new Event('change', { bubbles: true }))
        }`)
    await page.evaluate(`
        globalThis.tasksMs = []
        const observer = new PerformanceObserver((list) => tasksMs.push(...list.getEntries().map(({ duration }) => duration)))
        observer.observe({ type: 'longtask' })`)

    await ui.click('Upload')
    await choose(2_000_000)
    await ui.click('Stop')
    await ui.told('Nothing was stored. You have stopped it.')
    await choose(99_999)
    const [told, ...lines] = await ui.uploaded()
    const longestMs = Math.max(...(await page.evaluate<number[]>('tasksMs')))
    const saved = await Bun.file(await ui.saved('Save the refused lines')).text()
    await ui.choose(`\ufeff${saved.replaceAll('x,F', '1,F').replace('x,', '2,')}`)
    await ui.uploaded()
    await ui.click('Add 2 plants')
    await ui.told('All lines of the file are done.')

    expect([told, lines.length]).toEqual(['Compared: 0 new, 0 changed, 0 equal, 100,000 refused.', 500])
    expect(saved === `id,name\n${'x,Fern\n'.repeat(99_999)}x,"two\n""lines"""\n`).toBe(true)
    expect(await service.names()).toEqual(['Fern', 'two\n"lines"'])
    // The page aims at 200 ms, and the machine may be slow.
    expect(longestMs).toBeLessThan(1000)
  })

  testPage('goes on beside other panels, asks before the page is left, and ends by Stop', async (begin) => {
    const { service, page, ui } = await begin({})
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      asked.push(dialog.type())
      void dialog.dismiss()
    })
    const lines = Array.from({ length: 9 }, (_, id) => `{"id":${id},"name":"Plant ${id}"}\n`)
    await ui.click('Upload')
    await ui.choose(lines.join(''))
    await ui.uploaded()
    const slow = await Promise.all([0, 1, 2, 3].map((id) => ui.hold('PUT', `/plants/${id}`)))
    await ui.click('Add 9 plants')
    for (const { begun } of slow) await begun
    await ui.see('The upload brings the first plants.')
    const falsely = await page.getByText('no plants yet').count()
    const bar = await page.evaluate<unknown>('(({ value, max }) => [value, max])(document.querySelector("progress"))')
    await ui.click('New plant')
    await page.keyboard.press('Escape')
    await page.getByRole('form').waitFor({ state: 'detached' })
    await page.evaluate('setTimeout(() => location.reload())')
    await until('the browser asks', () => asked.length === 1)
    await ui.click('Sign out')
    await ui.click('Stop')
    for (const { release } of slow) release()
    await ui.told(
      'Of the file, at least 4 plants are added and 0 replaced, the last one in line 4. Choose the same file again',
    )

    expect([falsely, bar, asked]).toEqual([0, [0, lines.join('').length - lines.length], ['beforeunload', 'confirm']])
    expect(await service.names()).toEqual(['Plant 0', 'Plant 1', 'Plant 2', 'Plant 3'])
  })

  testInChromium('ends at once if its token ends or may not write, or a quota is full', async (begin) => {
    const { service, page, ui } = await begin({})
    const seen: unknown[] = []
    const refusals: number[] = []
    /** Uploads what is left. After two plants the server refuses each, also what is under way when the page stops. */
    const upload = async (error: number) => {
      let [puts, stored] = [0, 0]
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await page.route('**/plants/*', async (route) => {
        if (route.request().method() !== 'PUT') return route.fallback()
        if (++puts <= 2) return route.fulfill({ response: await route.fetch() }).then(() => void stored++)
        await until('two plants are stored', () => stored === 2)
        // The page reads answers in the order in which they end.
        await page.evaluate('fetch("healthz").then((answer) => answer.text()).then(() => {})')
        await route.fulfill({ status: Math.floor(error / 100), json: { error, message: '' } })
      })
      await ui.click('Upload')
      await ui.choose(`id,name\n${Array.from({ length: 99 }, (_, id) => `${id + 1},Fern\n`).join('')}`)
      await ui.uploaded()
      await page.locator('.upload .primary').click()
      await ui.see('Choose the same file again')
      refusals.push(puts - 2)
      seen.push((await page.locator('[role=status], #token-problem').allTextContents()).join(''))
    }
    const rest = 'Choose the same file again to store the rest.'

    for (const error of [40302, 40301, 40102]) await upload(error)
    await ui.signIn(service.token)
    await ui.see('6 plants in all.')

    expect(seen).toEqual([
      `You have as many plants as this server allows. Delete one, then add this one. Of the file, at least 2 plants are added and 0 replaced, the last one in line 3. ${rest}`,
      `This token may not do that. Sign in with one that may read your plants, or change them. Of the file, at least 2 plants are added and 0 replaced, the last one in line 5. ${rest}`,
      `The server does not accept this token any more: it has ended, or was taken back. Sign in with another one. Of the file, at least 2 plants are added and 0 replaced, the last one in line 7. ${rest}`,
    ])
    expect(Math.max(...refusals)).toBeLessThanOrEqual(4)
  })

  testPage('that one gives up says so, and refuses no line', async (begin) => {
    const { service, page, ui } = await begin({ isClosed: true })
    using proxy = startProxy(service)
    const away = () => new Response(null, { status: 502 })
    const seen: unknown[] = []
    const upload = async (text: string, giveUps: number) => {
      await ui.choose(text)
      await ui.uploaded()
      await page.locator('.upload .primary').click()
      for (let times = 0; times < giveUps; times++) await ui.click('Give up')
      seen.push([...(await ui.uploaded()), await ui.status().textContent()].join(' '))
    }
    const none = 'Stopped: 0 added, 0 replaced, 0 refused.'
    const rest = '0 plants are added and 0 replaced. Choose the same file again to store the rest.'

    await page.goto(urlOf(proxy))
    await ui.signIn(service.token)
    await ui.click('Upload')
    // Nor does it learn what has become of the plant.
    proxy.answer(({ method, url }, ask) => {
      if (method === 'PUT') return ask().then(away)
      return url.includes('/plants/') ? away() : undefined
    })
    await upload('{"id":1,"name":"Fern"}\n', 2)
    proxy.answer(({ method }) => {
      if (method !== 'PUT') return
      proxy.answer()
      return Response.json({ error: 42901, message: 'no more' }, { status: 429 })
    })
    await upload('{"id":2,"name":"Ivy"}\n', 1)

    expect(seen).toEqual([
      `${none} It is not known whether this was stored: the server cannot be reached. Of the file, at least ${rest}`,
      `${none} The server takes no more requests from this token for a while. Of the file, at least ${rest}`,
    ])
    expect(await service.names()).toEqual(['Fern'])
  })
})
