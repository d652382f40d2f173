import { describe, expect, test } from 'bun:test'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, serve, withUmask } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'
import { makeDatabase } from './support/database.ts'

const MODE_BITS = 0o777
const OWN = 0o600

/** The mode of each file in a folder. */
const modesIn = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & MODE_BITS]))

const logged = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe.concurrent('the files of a server', () => {
  test.each(['000', '777'])('can be used only by the user of the server, with umask %s', async (umask) => {
    using folder = makeFolder()
    const socket = join(folder.path, 'plantstore.sock')
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database, ['--listen', `unix:${socket}`, '--first-token'], {
      under: withUmask(umask),
    })
    // A write, so that all files are there.
    while (!server.stderr().includes('plst_')) await Bun.sleep(5)

    expect(modesIn(folder.path)).toEqual({
      'plantstore.db': OWN,
      'plantstore.db-shm': OWN,
      'plantstore.db-wal': OWN,
      'plantstore.sock': OWN,
    })
    expect(logged(server.stdout()).filter(({ level }) => level === 'warn')).toEqual([])
  })

  test.each(['000', '777'])(
    'can be used only by that user if token create makes them, with umask %s',
    async (umask) => {
      using made = makeDatabase()
      const args = ['token', 'create', '--user', 'me', '--database', made.database]
      const { exitCode } = await runPlantstore(args, { under: withUmask(umask) })

      expect([exitCode, modesIn(made.folder)]).toEqual([0, { 'plantstore.db': OWN }])
    },
  )
})

describe.concurrent('a database that is open to others', () => {
  test.each(['640', '604', '622'])(
    '(mode %s) gets one warning at the start of a server, not from every command, which says what to do',
    async (mode) => {
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      await createTokenIn(database)
      chmodSync(database, Number.parseInt(mode, 8))
      expect(await runPlantstore(['user', 'list', '--database', database])).toMatchObject({ exitCode: 0, stderr: '' })
      await using server = await serve(database)

      // SQLite gives the files beside it the same mode.
      const files = ['', '-wal', '-shm'].map((suffix) => database + suffix)
      const warnings = logged(server.stdout()).filter(({ level }) => level === 'warn')
      expect(warnings).toEqual([
        {
          level: 'warn',
          time: expect.any(String),
          msg: `the database is open to others: chmod 600 ${files.join(' ')}`,
        },
      ])
      expect(Bun.spawnSync(['chmod', ...warnings[0].msg.split('chmod ')[1].split(' ')]).exitCode).toBe(0)
      expect(new Set(Object.values(modesIn(folder.path)))).toEqual(new Set([OWN]))
    },
  )

  test.each(['600', '700'])('gets no warning if its mode is %s', async (mode) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database)
    chmodSync(database, Number.parseInt(mode, 8))
    await using server = await serve(database)

    expect(logged(server.stdout()).map(({ level }) => level)).toEqual(['info'])
  })
})
