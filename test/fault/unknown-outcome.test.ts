import { describe, expect, test } from 'bun:test'
import { openReader } from '../../src/engine/sqlite/driver.ts'
import { openStore } from '../../src/store/open.ts'
import { makeDatabase as makeFile } from '../cli/support/database.ts'
import { copyAsKilled } from '../store/sqlite/files.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeDatabase, POSTGRES_SERVER, serverUrl } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { startProgram } from '../support/program.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { createToken } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { SYNCS, traceCalls } from './system-calls.ts'

const FAILED =
  'The database failed, is damaged or cannot be reached: see that its disk works, keep all its files, and run plantstore check. See docs/how-to/troubleshoot.md.'

/** What commands show of the store that `fill` makes. */
const BEFORE = {
  'token list': ['1 me active', '2 they blocked'],
  'user list': ['me 1 1', 'they 1 0 blocked'],
  export: ['1 me'],
} as const
const [TOKENS, THEY_BLOCKED] = [BEFORE['token list'], BEFORE['user list'][1]]

/** A command that writes, and what the command shows afterwards that the message names. */
interface Write {
  readonly command: string
  readonly stdin?: string
  readonly shownBy: keyof typeof BEFORE
  /** Whether it would have printed new tokens. */
  readonly printsTokens?: boolean
  readonly shows: readonly string[]
  /** What it says first. */
  readonly told?: string
  /** How far it has come if the first commit was not sent. */
  readonly stopped?: string
  /** What it says if a signal stops it before the answer to the commit. */
  readonly cut?: string
}

const made = (...tokens: readonly string[]) =>
  ({ shownBy: 'token list', printsTokens: true, shows: [...TOKENS, ...tokens] }) as const
const revoked = { shownBy: 'token list', shows: ['1 me revoked', '2 they blocked'] } as const
const users = (...shows: readonly string[]) => ({ shownBy: 'user list', shows }) as const

const WRITES: readonly Write[] = [
  { command: 'token create --user new', ...made('3 new active') },
  {
    command: 'token create --batch',
    stdin: 'new\nnew\n',
    ...made('3 new active', '4 new active'),
  },
  { command: 'token rotate 1 --overlap 0', ...made('3 me active'), shows: [...revoked.shows, '3 me active'] },
  { command: 'token import -', stdin: `${makeTokenLine('new').line}\n`, ...made('3 new active'), printsTokens: false },
  { command: 'token revoke 1', ...revoked },
  { command: 'token revoke --user me --yes', ...revoked },
  { command: 'user block me', ...users('me 1 1 blocked', THEY_BLOCKED) },
  { command: 'user unblock they', ...users('me 1 1', 'they 1 0') },
  {
    command: 'user delete me --yes',
    ...users('me 0 1 blocked', THEY_BLOCKED),
    stopped: 'nothing was deleted. Run the same command again to delete the user.',
    cut: 'how much was deleted is unknown: see plantstore user list. Run the same command again.',
  },
]

const imports = { stdin: '{"user":"me","id":2,"name":"Ivy"}\n', shownBy: 'export', shows: ['1 me', '2 me'] } as const
const FILE_WRITES: readonly Write[] = [
  ...WRITES,
  { command: 'import -', ...imports },
  {
    command: 'import - --atomic',
    ...imports,
    told: 'Creates and deletes of servers wait until all is in, or are refused.\n',
  },
]

/** Makes two users: me with a token and a plant, and they with a token, who is blocked. */
async function fill(database: string): Promise<void> {
  const store = await openStore(database, () => {})
  await createToken(store)
  await createToken(store, { user: 'they' })
  await store.setUserBlock('they', 1)
  await store.createPlant(1, { id: 1n, name: 'Fern' })
  await store.close()
}

async function fillFile() {
  const file = makeFile()
  await fill(file.database)
  return file
}

/** A database behind a proxy that loses the answer to the first statement with this text. */
async function makeLosing(text: string, { isEmpty = false, fate = 'cut' as 'cut' | 'hold' } = {}) {
  const database = await makeDatabase()
  if (!isEmpty) await fill(database.url)
  const proxy = startPostgresProxy(await serverUrl())
  return {
    url: database.url,
    losing: proxy.by(database.url),
    lost: proxy.loseAnswerTo(text, fate),
    async [Symbol.asyncDispose]() {
      proxy[Symbol.dispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

const argsOf = (command: string, database: string) => [...command.split(' '), '--database', database]

type Run = Pick<Write, 'command' | 'stdin'>
const run = async ({ command, stdin = '' }: Run, database: string, under: readonly string[] = []) =>
  withoutName(await runPlantstore(argsOf(command, database), { stdin, under }))

/** Leaves out the line with which some commands begin. */
const withoutName = <Answer extends { readonly stderr: string }>(answer: Answer): Answer => ({
  ...answer,
  stderr: answer.stderr.replace(/^The database is .*\n/, ''),
})

/** The rows that a command shows. */
async function show(shownBy: keyof typeof BEFORE, database: string): Promise<readonly string[]> {
  const isList = shownBy !== 'export'
  const { stdout } = await run({ command: isList ? `${shownBy} --json` : shownBy }, database)
  const rows = isList ? stdout : `[${stdout.trim().replaceAll('\n', ',')}]`
  return JSON.parse(rows).map(({ id, user, state, tokens, plants, blocked }: Record<string, unknown>) =>
    [id, user, state, tokens, plants, blocked && 'blocked'].filter((value) => value != null).join(' '),
  )
}

/** The answer of a command that fails, and has printed no result. */
const failed = (message: string, told = '') => ({ stdout: '', stderr: `${told}plantstore: ${message}\n`, exitCode: 3 })

const unknown = ({ shownBy, printsTokens = false }: Pick<Write, 'shownBy' | 'printsTokens'>) =>
  `Whether it was done is unknown: see plantstore ${shownBy}${printsTokens ? ', because a token may be active that was not printed' : ''}. ${FAILED}`

describe.skipIf(lacks(POSTGRES_SERVER))('if PostgreSQL does the commit of a command and the answer is lost', () => {
  test.each(WRITES)('$command says that its outcome is unknown, and what shows it', async (write) => {
    await using database = await makeLosing('COMMIT')

    expect(await run(write, database.losing)).toEqual(failed(unknown(write)))
    expect(database.lost()).toBe(1)
    expect(await show(write.shownBy, database.url)).toEqual(write.shows)
  })

  test.each(WRITES.filter(({ cut }) => cut))('$command that SIGTERM stops meanwhile says the same', async (write) => {
    await using database = await makeLosing('COMMIT', { fate: 'hold' })
    const options = { stdin: write.stdin ?? '', env: { PATH: process.env.PATH } }

    const { child, ended } = startProgram([...COMMAND, ...argsOf(write.command, database.losing)], options)
    await until('the answer is lost', (see) => see(database.lost()) > 0)
    child.kill('SIGTERM')

    expect(withoutName(await ended)).toEqual({
      stdout: '',
      stderr: `Stopped by SIGTERM: ${write.cut}\n`,
      exitCode: 143,
    })
    expect(await show(write.shownBy, database.url)).toEqual(write.shows)
  })

  test('serve --first-token ends, and says that a token may be active', async () => {
    await using database = await makeLosing('COMMIT', { isEmpty: true })

    await using server = await serve(database.losing, ['--first-token'])

    expect(await server.ended()).toBe(3)
    expect(server.stderr()).toBe(`plantstore: ${unknown({ shownBy: 'token list', printsTokens: true })}\n`)
    expect(database.lost()).toBe(1)
    expect(await show('token list', database.url)).toEqual(['1 me active'])
  })

  test('copy looks for its commit, and succeeds', async () => {
    using source = await fillFile()
    await using target = await makeLosing('COMMIT', { isEmpty: true })

    const copied = await runPlantstore(['copy', '--from', source.database, '--to', target.losing, '--json'])

    expect(copied.exitCode).toBe(0)
    expect(JSON.parse(copied.stdout)).toMatchObject({ users: 2, tokens: 2, plants: 1 })
    expect(target.lost()).toBe(1)
    expect(await show('user list', target.url)).toEqual(BEFORE['user list'])
  })
})

describe.skipIf(lacks(POSTGRES_SERVER))('if the connection to PostgreSQL is lost before a commit', () => {
  /** The last statement before it. */
  const LAST = 'token_changes = $2'

  test.each(WRITES)('$command has done nothing, and does not say that this is unknown', async (write) => {
    await using database = await makeLosing(LAST)

    const answer = await run(write, database.losing)

    expect(answer).toEqual(failed(FAILED, write.stopped && `Stopped: ${write.stopped}\n`))
    expect(database.lost()).toBe(1)
    expect(await show(write.shownBy, database.url)).toEqual(BEFORE[write.shownBy])
  })

  test('serve --first-token tries again, and prints the token', async () => {
    await using database = await makeLosing(LAST, { isEmpty: true })

    await using server = await serve(database.losing, ['--first-token'])

    await until('the token is printed', (see) => see(server.stderr()).includes('plst_'))
    expect(database.lost()).toBe(1)
    expect(await show('token list', database.url)).toEqual(['1 me active'])
    expect(await server.end()).toBe(0)
  })
})

describe.skipIf(lacks(STRACE))('if a sync of SQLite fails', () => {
  /** The sync before it is that of the WAL's header. */
  const FIRST_COMMIT = 2

  /** Runs a command whose syncs of the database and its WAL fail: this one, or this one and all after it. */
  async function runFailing(write: Run, database: string, sync: number | string) {
    const inject = `${SYNCS}:error=EIO:when=${sync}`
    using trace = traceCalls({ inject, files: [database, `${database}-wal`] })
    const answer = await run(write, database, trace.under)
    expect((await trace.seen()).calls.filter(({ isInjected }) => isInjected)).not.toEqual([])
    return answer
  }

  test.each(FILE_WRITES)('at the commit of $command, it says that its outcome is unknown', async (write) => {
    using file = await fillFile()
    using killed = makeFile()
    // Another process, such as a server. Without one, an import takes the commit back when it ends.
    using other = openReader(file.database)
    other.prepare('select 1 from users').values()

    const answer = await runFailing(write, file.database, FIRST_COMMIT)

    expect(answer).toEqual(failed(unknown(write), write.told))
    copyAsKilled(file.database, killed.database)
    expect(await show(write.shownBy, killed.database)).toEqual(write.shows)
  })

  const done = 'This was done, but then the database failed: see that its disk works, and run plantstore check.'
  const deleted = [unknown({ shownBy: 'user list' }), 'user list', [THEY_BLOCKED]] as const

  // The sync of a checkpoint. That of user delete erases the WAL, and fails once or, with all later ones, for good.
  test.each([
    [`${FIRST_COMMIT + 1}`, 'token revoke 1', done, revoked.shownBy, revoked.shows],
    [`${FIRST_COMMIT + 2}`, 'user delete me --yes', ...deleted],
    [`${FIRST_COMMIT + 2}+`, 'user delete me --yes', ...deleted],
  ] as const)('number %s, after the last commit of %s, it says so', async (sync, command, message, shownBy, shows) => {
    using file = await fillFile()

    expect(await runFailing({ command }, file.database, sync)).toEqual(failed(message))
    expect(await show(shownBy, file.database)).toEqual(shows)
  })
})
