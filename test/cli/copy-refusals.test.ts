import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { engineOf } from '../../src/store/open.ts'
import { SQLITE } from '../support/empty-databases.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { refusal, refusalWith } from './support/answers.ts'
import { ACROSS, copy, fill, KINDS } from './support/copies.ts'

const unfinished = (database: string) =>
  refusal(
    3,
    `The database ${database} is a copy that is not finished: run plantstore copy again, which starts it over.`,
  )

/** Leaves an unfinished copy. */
async function begin(database: string): Promise<void> {
  const tools = await engineOf(database).copyTools({ passwordFile: undefined, onEvent: () => {} })
  await tools.fill(async () => {})
}

describe('copy', () => {
  test.each(ACROSS)('$way refuses a store that an idle server has open, but takes a snapshot', async ({ from, to }) => {
    await using source = await from.make()
    await using target = await to.make()
    const { write } = await fill(source.database)
    const before = await source.dump()
    await using server = await serve(source.database)

    const refused = await copy(source.database, target.database)
    const nothing = await target.dump()
    const taken = await copy(source.database, target.database, '--snapshot')
    const later = await server.request('POST', '/plants', { token: write, body: '{"id":6,"name":"Fern"}' })

    const advice = 'end it, or use --snapshot'
    expect(refused).toEqual(refusal(3, `The database ${source.database} is open in another process: ${advice}.`))
    expect(nothing).toBeUndefined()
    expect(taken).toMatchObject({ stdout: `${target.database}\n`, exitCode: 0 })
    expect(taken.stderr).toStartWith(`The copy will not contain later writes to ${source.database}.\nCopied 2 users, `)
    expect(later.status).toBe(200)
    expect({ ...(await target.dump()), tokens: [] }).toEqual({ ...before, tokens: [] } as never)
    expect(await server.end()).toBe(0)
    expect(await copy(target.database, source.database)).toMatchObject({ exitCode: 3 })
  })

  test.each(KINDS)('refuses to fill a $name store that a server has open', async (to) => {
    await using source = await SQLITE.make()
    await using target = await to.make()
    await fill(source.database)
    await using server = await serve(target.database)
    const before = await target.dump()

    const refused = await copy(source.database, target.database)

    expect(refused).toEqual(refusal(3, `The database ${target.database} is open in another process: end it.`))
    expect(await target.dump()).toEqual(before)
    expect(await server.end()).toBe(0)
  })

  test.each(KINDS)('is the only command that takes an unfinished $name copy, to start it over', async (kind) => {
    await using place = await kind.make()
    await using other = await SQLITE.make()
    await begin(place.database)
    const commands = [['serve', '--listen', '127.0.0.1:0'], ['check'], ['user', 'list'], ['token', 'list']]
    const ofFiles = [['status'], ['export'], ['import', '/dev/null'], ['backup', `${place.database}.backup`]]
    const all = [...commands, ['token', 'create', '--user', 'me'], ...(kind === SQLITE ? ofFiles : [])]

    for (const command of all) {
      const answer = await runPlantstore([...command, '--database', place.database])

      expect({ command, ...answer }).toEqual({ command, ...unfinished(place.database) })
    }
    expect(await copy(place.database, other.database)).toEqual(unfinished(place.database))
    expect(await other.dump()).toBeUndefined()
  })

  test.each(KINDS)('refuses a missing $name store, and makes nothing', async (from) => {
    await using source = await from.make()
    using folder = makeFolder()

    expect(await copy(source.database, join(folder.path, 'copy.db'))).toEqual(refusalWith(3, 'There is no '))
    expect(readdirSync(folder.path)).toEqual([])
    expect(await source.dump()).toBeUndefined()
  })

  test.each(KINDS)('refuses to copy a $name store to itself', async (kind) => {
    await using place = await kind.make()
    await fill(place.database)
    const before = await place.dump()

    expect(await copy(place.database, place.database)).toEqual(
      refusal(2, 'A store cannot be copied to itself: name another one.'),
    )
    expect(await place.dump()).toEqual(before)
  })

  test('refuses a file that is not a store, and leaves no side files', async () => {
    await using source = await SQLITE.make()
    await using target = await SQLITE.make()
    await fill(source.database)
    await Bun.write(target.database, 'plants'.repeat(100))

    const refused = await copy(source.database, target.database)

    expect(refused).toEqual(refusal(3, `The file ${target.database} is not a database.`))
    expect(await Bun.file(target.database).text()).toBe('plants'.repeat(100))
    expect(readdirSync(dirname(target.database))).toEqual(['plantstore.db'])
    expect(readdirSync(dirname(source.database))).toEqual(['plantstore.db'])
  })
})
