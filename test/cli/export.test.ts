import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import { createUser, IDS } from '../store/fixtures.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { createTokenIn } from '../support/tokens.ts'

/** More than a pipe has room for, and than one batch. */
const MANY_PLANTS = 50_000

/** A folder with a database in which these users have plants with each of `IDS`. */
async function makeDatabase(users: readonly string[]) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const store = await openStore(database, () => {})
  for (const name of users) {
    const user = await createUser(store, name)
    for (const [index, id] of IDS.entries()) {
      await store.createPlant(user, {
        id,
        name: `Fern ${id}`,
        ...(index % 2 === 0 && { tag: `"\n\u0001\u007f\u0085\u2028\u202e\u2066 🌱 ${name}` }),
      })
    }
  }
  await store.close()
  return { database, folder: folder.path, [Symbol.dispose]: folder[Symbol.dispose] }
}

const linesOf = (user: string): string[] =>
  IDS.map((id, index) => {
    const tag = index % 2 === 0 ? `,"tag":"\\"\\n\\u0001\\u007f\\u0085\\u2028\\u202e\\u2066 🌱 ${user}"` : ''
    return `{"user":"${user}","id":${id},"name":"Fern ${id}"${tag}}`
  })

describe.concurrent('export', () => {
  test('prints all plants by user and id, exact at every digit, a line each', async () => {
    using made = await makeDatabase(['you', 'me'])
    const { stdout, stderr, exitCode } = await runPlantstore(['export', '--database', made.database])

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    expect(stdout).toBe([...linesOf('me'), ...linesOf('you')].map((line) => `${line}\n`).join(''))
  })

  test('prints the plants of one user', async () => {
    using made = await makeDatabase(['you', 'me'])
    const { stdout, exitCode } = await runPlantstore(['export', '--user', 'you', '--database', made.database])

    expect(exitCode).toBe(0)
    expect(stdout).toBe(
      linesOf('you')
        .map((line) => `${line}\n`)
        .join(''),
    )
  })

  test('prints nothing where there is nothing', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database)

    for (const args of [[], ['--user', 'me']]) {
      expect(await runPlantstore(['export', ...args, '--database', database])).toEqual({
        stdout: '',
        stderr: '',
        exitCode: 0,
      })
    }
  })

  test('refuses a user and a database that are not there', async () => {
    using made = await makeDatabase(['me'])
    const nowhere = join(made.folder, 'nowhere.db')

    expect(await runPlantstore(['export', '--user', 'nobody', '--database', made.database])).toEqual({
      stdout: '',
      stderr: 'plantstore: There is no user nobody.\n',
      exitCode: 1,
    })
    expect(await runPlantstore(['export', '--database', nowhere])).toMatchObject({ stdout: '', exitCode: 3 })
  })

  test('is what was there when it began, whatever a server writes meanwhile', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    addPlants(database, MANY_PLANTS)
    const { stdout: before } = await runPlantstore(['export', '--database', database])
    await using server = await serve(database)
    const child = Bun.spawn([...COMMAND, 'export', '--database', database], { stdout: 'pipe', stderr: 'pipe' })
    const reader = child.stdout.getReader()
    const first = await reader.read()
    // It waits for its reader now, and has read a small part.
    const deleted = await server.request('DELETE', `/plants/${MANY_PLANTS}`, { token })
    const created = await server.request('POST', '/plants', { token, body: { id: MANY_PLANTS + 1, name: 'Fern' } })
    const chunks = [first.value ?? new Uint8Array()]
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      chunks.push(value)
    }

    expect([deleted.status, created.status, await child.exited]).toEqual([204, 200, 0])
    expect(Buffer.concat(chunks).toString() === before).toBe(true)
    expect((await runPlantstore(['export', '--database', database])).stdout).not.toBe(before)
  })

  test.each([
    ['waits for it', ''],
    ['does not wait, because of another program', `"$2" -e 'process.stdout.isTTY' &&`],
  ])('into a pipe that is full and %s is whole', async (_, before) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database)
    addPlants(database, MANY_PLANTS)
    const [piped, plain] = [join(folder.path, 'piped'), join(folder.path, 'plain')]
    const command = COMMAND.map((word) => `'${word}'`).join(' ')
    const script = `(${before} ${command} export --database "$1") | (sleep 0.5; cat) >"$3" && ${command} export --database "$1" >"$4"`
    const child = Bun.spawn(['sh', '-c', script, 'sh', database, process.execPath, piped, plain])

    expect(await child.exited).toBe(0)
    expect(readFileSync(piped, 'latin1') === readFileSync(plain, 'latin1')).toBe(true)
    expect(readFileSync(plain, 'latin1').split('\n')).toHaveLength(MANY_PLANTS + 1)
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'ends by %s at once while its reader is slow, and says how far it came and how to go on',
    async (signal) => {
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      await createTokenIn(database)
      addPlants(database, MANY_PLANTS)
      const child = Bun.spawn([...COMMAND, 'export', '--database', database], { stdout: 'pipe', stderr: 'pipe' })
      const reader = child.stdout.getReader()
      await reader.read()
      // It waits for its reader now.
      child.kill(signal)

      expect(await child.exited).toBe(signal === 'SIGINT' ? 130 : 143)
      expect(await child.stderr.text()).toMatch(
        new RegExp(
          `^Stopped by ${signal}: \\d{1,5} of ${MANY_PLANTS} plants are printed\\. The output is not whole: run the same command again\\.\n$`,
          'm',
        ),
      )
    },
  )

  test('ends in silence with 141 when its reader goes away', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database)
    addPlants(database, MANY_PLANTS)
    const child = Bun.spawn([...COMMAND, 'export', '--database', database], { stdout: 'pipe', stderr: 'pipe' })
    const reader = child.stdout.getReader()
    await reader.read()
    await reader.cancel()

    expect(await child.exited).toBe(141)
    expect(await child.stderr.text()).toBe('')
  })
})
