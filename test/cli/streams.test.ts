import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { snapshot } from '../store/sqlite/files.ts'
import { COMMAND } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal, refusalWith } from './support/answers.ts'
import { untilAccepted } from './support/connect.ts'
import { fillDatabase } from './support/database.ts'

/** In a shell: file descriptor 4 is a pipe that nobody reads any more. */
const BROKEN_PIPE = 'mkfifo pipe && exec 3<>pipe 4>pipe 3<&-'
/** More lines than a pipe that nobody reads has room for. */
const MANY_REQUESTS = 1000
/** A second of --drain, and the machine's own delays. */
const END_LIMIT_MS = 1000 + SLACK_MS

const NO_DATABASE = 'The database /dev/stdout is not a regular file: name one.'

/** Runs a script of the shell, in which "$@" is the executable. */
function start(script: string, cwd: string) {
  const env = { PATH: process.env.PATH ?? '' }
  return Bun.spawn(['sh', '-c', script, 'sh', ...COMMAND], { cwd, env, stdout: 'pipe', stderr: 'pipe' })
}

async function run(script: string, cwd: string) {
  const child = start(script, cwd)
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { stdout, stderr, exitCode }
}

const SERVE = '"$@" serve --drain 1s --listen unix:socket --database plantstore.db'
const fetchOver = (folder: string, path: string, init: RequestInit = {}) =>
  fetch(`http://localhost${path}`, { ...init, unix: join(folder, 'socket') })

/** Starts a server by a script and asks it many times. Returns what it answered and how it ended. */
async function serveManyRequests(script: string, folder: string) {
  const database = join(folder, 'plantstore.db')
  const text = await createTokenIn(database)
  const server = start(script, folder)
  await untilAccepted(join(folder, 'socket'), server)
  const statuses = new Set<number>()
  const headers = { authorization: `Bearer ${text}` }
  for (let count = 0; count < MANY_REQUESTS; count++) {
    statuses.add((await fetchOver(folder, '/plants?limit=1', { headers })).status)
  }
  server.kill('SIGTERM')
  const exitCode = await Promise.race([server.exited, Bun.sleep(END_LIMIT_MS).then(() => 'none in time')])
  server.kill('SIGKILL')
  return { statuses, exitCode, stderr: await server.stderr.text() }
}

const WELL = { statuses: new Set([200]), exitCode: 0, stderr: '' }

describe('a command', () => {
  test.each(['openapi', 'help', 'user list', 'token list --json', 'status', 'export'])(
    'ends in silence with 141 when the reader of stdout has gone: %s',
    async (command) => {
      using made = await fillDatabase(1)
      const { stderr, exitCode } = await run(`${BROKEN_PIPE} && exec "$@" ${command} >&4`, made.folder)

      expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 141 })
    },
  )

  test('does its work when the reader of stderr has gone', async () => {
    using folder = makeFolder()
    const script = `${BROKEN_PIPE} && exec "$@" token create --user me 2>&4`
    const { stdout, stderr, exitCode } = await run(script, folder.path)

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    expect(stdout).toMatch(/^plst_[0-9A-Za-z]{49}\n$/)
  })

  test('says how to replace a token again if it cannot print the new one, and exits with 1', async () => {
    using folder = makeFolder()
    await createTokenIn(join(folder.path, 'plantstore.db'))
    const { stderr, exitCode } = await run(`${BROKEN_PIPE} && exec "$@" token rotate 1 >&4`, folder.path)
    const again = await run('exec "$@" token rotate 2 --overlap 0', folder.path)

    expect(stderr).toEndWith(
      'plantstore: Token 2 is active, but could not be printed (nobody reads stdout): run plantstore token rotate 2 --overlap 0.\n',
    )
    expect([exitCode, again.exitCode]).toEqual([1, 0])
    expect(again.stdout).toMatch(/^plst_[0-9A-Za-z]{49}\n$/)
  })

  test.skipIf(!existsSync('/dev/full')).each([
    ['>&4', 'nobody reads stdout'],
    ['>/dev/full', 'ENOSPC: no space left on device, write'],
  ])('says which token to revoke if it cannot print the token, and exits with 1: %s', async (redirection, reason) => {
    using folder = makeFolder()
    await createTokenIn(join(folder.path, 'plantstore.db'))
    const script = `${BROKEN_PIPE} && exec "$@" token create --user me ${redirection}`
    const { stderr, exitCode } = await run(script, folder.path)
    const revoked = await run('exec "$@" token revoke 2', folder.path)

    expect(stderr).toEndWith(
      `plantstore: Token 2 is active, but could not be printed (${reason}): run plantstore token revoke 2.\n`,
    )
    expect(exitCode).toBe(1)
    expect(revoked).toEqual(done('Revoked token 2 of user me (write).'))
  })

  test.skipIf(!existsSync('/dev/full')).each(['openapi', 'help'])(
    'says in a line that it cannot print its result, and exits with 1: %s',
    async (command) => {
      using folder = makeFolder()

      expect(await run(`exec "$@" ${command} >/dev/full`, folder.path)).toEqual(refusalWith(1, ''))
    },
  )

  test.each([
    ['backup /dev/stdout', NO_DATABASE, 3],
    ['backup --dir /dev/stdout', '/dev/stdout is not a directory: name a file inside one.', 3],
    ['restore plantstore.db --force --database /dev/stdout', NO_DATABASE, 3],
    ['copy --from plantstore.db --to /dev/stdout', NO_DATABASE, 3],
    ['token create --user me --database /dev/stdout', NO_DATABASE, 3],
    ['serve --listen unix:socket --database /dev/stdout', NO_DATABASE, 3],
    ['status --database /dev/stdout', NO_DATABASE, 3],
    ['restore /dev/stdin --database new.db', '/dev/stdin is not a regular file: name the backup.', 3],
  ])('refuses a pipe in place of a file: %s', async (command, reason, code) => {
    using folder = makeFolder()
    await createTokenIn(join(folder.path, 'plantstore.db'))
    const before = snapshot(folder.path)

    expect(await run(`cat plantstore.db | "$@" ${command}`, folder.path)).toEqual(refusal(code, reason))
    expect(snapshot(folder.path)).toEqual(before)
  })

  test('works with stdin, stdout and stderr closed', async () => {
    using folder = makeFolder()
    const { exitCode } = await run('exec "$@" token create --user me <&- >&- 2>&-', folder.path)

    expect(exitCode).toBe(0)
    expect(await run('exec "$@" check', folder.path)).toMatchObject({ exitCode: 0 })
  })
})

describe('a server', () => {
  test.each([
    ['a closed stdin', `exec ${SERVE} <&- >log`],
    ['all streams closed', `exec ${SERVE} <&- >&- 2>&-`],
    ['a log whose reader has gone', `${BROKEN_PIPE} && exec ${SERVE} >&4`],
  ])('works with %s', async (_, script) => {
    using folder = makeFolder()
    const log = join(folder.path, 'log')

    expect(await serveManyRequests(script, folder.path)).toEqual(WELL)
    if (existsSync(log)) expect(readFileSync(log, 'utf8').match(/"msg":"request"/g)).toHaveLength(MANY_REQUESTS)
  })
})
