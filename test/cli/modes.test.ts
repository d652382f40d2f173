import { describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, serve, withUmask } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks, type Requirement } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { refusal } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'

const MODE_BITS = 0o777
const OWN = 0o600

/** The mode of each file in a folder. */
const modesIn = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & MODE_BITS]))

const warningsOf = (server: { stdout(): string }) => {
  const lines = server.stdout().trim().split('\n')
  return lines.map((line) => JSON.parse(line)).flatMap(({ level, msg }) => (level === 'warn' ? [msg] : []))
}

describe.concurrent('the files of a server', () => {
  test.each(['000', '777'])('are open to its user alone, and its socket to its group, with umask %s', async (umask) => {
    using made = makeDatabase()
    const [socket, metrics] = ['plantstore.sock', 'metrics.sock'].map((name) => `unix:${join(made.folder, name)}`)
    const flags = ['--listen', `${socket}`, '--metrics-listen', `${metrics}`, '--first-token']
    await using server = await serve(made.database, flags, { under: withUmask(umask) })
    // A write, so that all files are there.
    await until('the token is printed', () => server.stderr().includes('plst_'))

    expect(modesIn(made.folder)).toEqual({
      'metrics.sock': OWN,
      'plantstore.db': OWN,
      'plantstore.db-shm': OWN,
      'plantstore.db-wal': OWN,
      'plantstore.sock': 0o660,
    })
    expect(warningsOf(server)).toEqual([])
  })
})

describe.concurrent('a database that is open to others', () => {
  test.each(['640', '604', '622'])(
    '(mode %s) gets one warning at the start of a server, not from every command, which says what to do',
    async (mode) => {
      using made = makeDatabase()
      await createTokenIn(made.database)
      chmodSync(made.database, Number.parseInt(mode, 8))
      expect(await made.run('user', 'list')).toMatchObject({ exitCode: 0, stderr: '' })
      await using server = await serve(made.database)

      // SQLite gives the files beside it the same mode.
      const files = ['', '-wal', '-shm'].map((suffix) => made.database + suffix)
      expect(warningsOf(server)).toEqual([`the database is open to others: chmod 600 ${files.join(' ')}`])
    },
  )
})

/** The service's own user and group: numbers that no account needs to have. */
const [USER, GROUP] = [4321, 4322]
const AS_SERVICE = ['setpriv', `--reuid=${USER}`, `--regid=${GROUP}`, '--clear-groups']
/** Root as some containers have it. */
const WITHOUT_CHOWN = ['setpriv', '--bounding-set=-chown', '--inh-caps=-chown']

/** Only root can become another user. With `CI=true` the tests fail instead of being skipped. */
const CHANGE_OF_USER: Requirement = { missing: 'root or setpriv is missing', isMet: canChangeUser }

function canChangeUser(): boolean {
  const commands = [AS_SERVICE, WITHOUT_CHOWN]
  return Bun.which('setpriv') !== null && commands.every((command) => Bun.spawnSync([...command, 'true']).success)
}

/** A directory of the service's user, and a backup that root has made elsewhere. */
async function makeDirectory() {
  const folder = makeFolder()
  // Others must get to the directory inside.
  chmodSync(folder.path, 0o755)
  const [directory = '', original = '', backup = ''] = ['data', 'original.db', 'backup.db'].map((name) =>
    join(folder.path, name),
  )
  mkdirSync(directory)
  chownSync(directory, USER, GROUP)
  const token = await createTokenIn(original)
  await runPlantstore(['backup', backup, '--database', original])
  const database = join(directory, 'plantstore.db')
  return { directory, original, backup, database, token, [Symbol.dispose]: folder[Symbol.dispose] }
}

/** The owner, group and mode of each file in a directory. */
const ownersIn = (directory: string) =>
  Object.fromEntries(
    readdirSync(directory).map((name) => {
      const { uid, gid, mode } = statSync(join(directory, name))
      return [name, [uid, gid, mode & 0o777]]
    }),
  )

describe.skipIf(lacks(CHANGE_OF_USER)).concurrent('root', () => {
  test('restores a database that its own user can serve, with the same owner, group and mode', async () => {
    using made = await makeDirectory()
    await runPlantstore(['token', 'create', '--user', 'old', '--database', made.database], { under: AS_SERVICE })
    chmodSync(made.database, 0o640)
    const restored = await runPlantstore(['restore', made.backup, '--force', '--database', made.database])
    await using server = await serve(made.database, [], { under: AS_SERVICE })
    const { status } = await server.request('POST', '/plants', { token: made.token, body: { id: 1, name: 'Fern' } })

    expect([restored.exitCode, status, await server.end()]).toEqual([0, 200, 0])
    expect(ownersIn(made.directory)).toEqual({ 'plantstore.db': [USER, GROUP, 0o640] })
  })

  test.each([
    ['token create', ({ database }) => ['token', 'create', '--user', 'me', '--database', database]],
    ['restore', ({ database, backup }) => ['restore', backup, '--database', database]],
    ['copy', ({ database, original }) => ['copy', '--from', original, '--to', database]],
    ['backup FILE', ({ database, original }) => ['backup', database, '--database', original]],
    ['backup --dir', ({ directory, original }) => ['backup', '--dir', directory, '--database', original]],
  ] satisfies readonly [string, (made: Awaited<ReturnType<typeof makeDirectory>>) => readonly string[]][])(
    'gives the owner and group of the directory to a file that %s makes',
    async (_, argsOf) => {
      using made = await makeDirectory()
      const { exitCode } = await runPlantstore(argsOf(made))

      expect(exitCode).toBe(0)
      expect(Object.values(ownersIn(made.directory))).toEqual([[USER, GROUP, 0o600]])
    },
  )

  test.each([
    ['an empty WAL', 0],
    ['a WAL', 1],
  ])('tells a user why a backup is refused that may not read the files beside the database: %s', async (_, writes) => {
    using made = await makeDirectory()
    await runPlantstore(['token', 'create', '--user', 'me', '--database', made.database])
    await using server = await serve(made.database)
    if (writes > 0) await createTokenIn(made.database)
    expect(statSync(`${made.database}-wal`).size > 0).toBe(writes > 0)
    for (const end of ['-wal', '-shm']) chownSync(made.database + end, 0, 0)
    const args = ['backup', join(made.directory, 'copy.db'), '--database', made.database]
    const refused = await runPlantstore(args, { under: AS_SERVICE })

    const advice = 'let this user read and write it and the files beside it'
    expect(refused).toEqual(refusal(3, `${made.database} cannot be opened: ${advice}.`))
    expect(await server.end()).toBe(0)
  })

  test('keeps the service from restoring a backup that it may not read, and that one reads why', async () => {
    using made = await makeDirectory()
    const refused = await runPlantstore(['restore', made.backup, '--database', made.database], { under: AS_SERVICE })

    expect(refused).toEqual(refusal(3, `${made.backup} cannot be opened: let this user read it.`))
  })

  test('gives all files of a server the owner and group of the directory', async () => {
    using made = await makeDirectory()
    await using _server = await serve(made.database)

    const owner = [USER, GROUP, 0o600]
    expect(ownersIn(made.directory)).toEqual({
      'plantstore.db': owner,
      'plantstore.db-shm': owner,
      'plantstore.db-wal': owner,
    })
  })

  test('makes a backup for itself if it may not change owners', async () => {
    using made = await makeDirectory()
    const file = join(made.directory, 'plants.db')
    const { exitCode } = await runPlantstore(['backup', file, '--database', made.original], { under: WITHOUT_CHOWN })

    expect(exitCode).toBe(0)
    expect(ownersIn(made.directory)).toEqual({ 'plants.db': [0, 0, 0o600] })
  })
})
