import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { lacks } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { SLACK_MS } from '../support/slack.ts'
import { amongThousand, makeFileToken, mountSecret, replaceFile, WRONG_LINES } from '../support/tokens-file.ts'
import { until } from '../support/until.ts'
import { makeDatabase } from './support/database.ts'

const READ = 'the tokens file was read'
const REFUSED = 'the tokens file cannot be used: its last tokens stay valid'
/** The documentation promises that a change takes effect within this time. */
const CHANGE_MS = 10_000
const HUGE_BYTES = 100 * 1024 * 1024

/** A server with a tokens file of these lines. */
async function serveTokensFile(lines: readonly string[], options?: Parameters<typeof serve>[2]) {
  const made = makeDatabase()
  const path = join(made.folder, 'tokens')
  replaceFile(path, lines)
  const server = await serve(made.database, ['--tokens-file', path], options)
  /** What the server has logged of changes of the file. */
  const changes = () =>
    server
      .stdout()
      .split('\n')
      .filter((line) => line.includes(READ) || line.includes(REFUSED))
      .map((line) => JSON.parse(line))
  const nextChange = async (count: number) => {
    await until('the server noticed a change', () => changes().length > count)
    return changes().at(-1)
  }
  return {
    ...made,
    path,
    server,
    changes,
    status: async (token: string) => (await server.request('GET', '/plants?limit=1', { token })).status,
    /** Waits until the server has logged one more change. */
    nextChange: () => nextChange(changes().length),
    /** Asks the server to read the file, and waits until it has. */
    async reread() {
      const count = changes().length
      server.signal('SIGHUP')
      return nextChange(count)
    },
    async [Symbol.asyncDispose]() {
      await server.kill()
      made[Symbol.dispose]()
    },
  }
}

const read = (tokens: number) => expect.objectContaining({ level: 'info', msg: READ, tokens })
const refused = (reason: string) =>
  expect.objectContaining({ level: 'error', msg: REFUSED, reason: expect.stringContaining(reason) })

function writeHuge(path: string): void {
  rmSync(path, { recursive: true })
  writeFileSync(path, makeFileToken().line)
  truncateSync(path, HUGE_BYTES)
}

/** How often `cutAgainAndAgain` cuts the file between two signals, and how often it sends one: 1.5 s in all. */
const CUTS_PER_HANGUP = 25
const HANGUPS = 6
const CUT_MS = 8
const WHOLE_MS = 2

/**
 * Cuts a file at random lengths and writes it again in place, while the server is asked to read it. The server takes a state of the
 * file that it has seen twice, 200 ms apart. So no cut state may stay for longer than 100 ms: each ends without a turn of the loop.
 */
async function cutAgainAndAgain(path: string, contents: string, hangUp: () => void) {
  const file = openSync(path, 'r+')
  for (let hangup = 0; hangup < HANGUPS; hangup++) {
    hangUp()
    for (let cut = 0; cut < CUTS_PER_HANGUP; cut++) {
      ftruncateSync(file, Math.floor(Math.random() * contents.length))
      Bun.sleepSync(CUT_MS)
      writeSync(file, contents, 0)
      await Bun.sleep(WHOLE_MS)
    }
  }
  closeSync(file)
}

describe.concurrent('a tokens file that changes', () => {
  test('is read within 10 seconds: the server accepts new tokens, and refuses those without a line', async () => {
    const [stays, goes, comes] = [makeFileToken(), makeFileToken(), makeFileToken()]
    await using service = await serveTokensFile([stays.line, goes.line])
    const statuses = () => Promise.all([stays, goes, comes].map(({ text }) => service.status(text)))
    const before = await statuses()
    const startMs = performance.now()
    replaceFile(service.path, [comes.line, stays.line])
    const change = await service.nextChange()

    expect(performance.now() - startMs).toBeLessThan(CHANGE_MS + SLACK_MS)
    expect([before, change, await statuses()]).toEqual([[200, 200, 401], read(2), [200, 401, 200]])
  })

  test('is read at SIGHUP at once, and gives a token another scope or user', async () => {
    const { text: token, line, hash } = makeFileToken('me', 'write')
    await using service = await serveTokensFile([line])
    const { server } = service
    const create = async (id: number) =>
      (await server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })).status
    const list = async () => (await server.request('GET', '/plants', { token })).json()
    const before = [await create(1), await list()]
    replaceFile(service.path, [`me read ${hash}`])
    await service.reread()
    const readOnly = [await create(2), await list()]
    replaceFile(service.path, [`you write ${hash}`])
    await service.reread()

    expect([before, readOnly]).toEqual([
      [200, [{ name: 'Fern' }]],
      [403, [{ name: 'Fern' }]],
    ])
    expect([await list(), await create(1)]).toEqual([[], 200])
  })

  test('keeps its old tokens while it has an error in a line, is empty, missing or too large', async () => {
    const [stays, never] = [makeFileToken(), makeFileToken()]
    await using service = await serveTokensFile([stays.line])
    const { path, status } = service
    const faults: (readonly [() => void, string])[] = [
      ...WRONG_LINES.map(
        ([, line, said]) =>
          [() => replaceFile(path, [...amongThousand(line, 77), never.line]), `Line 77 of ${path}${said}`] as const,
      ),
      [() => replaceFile(path, [never.line, never.line]), `Line 2 of ${path} has the same hash as line 1`],
      [() => writeFileSync(path, ''), 'has no token'],
      [() => rmSync(path), 'there is no such file'],
      [() => mkdirSync(path), 'is not a regular file'],
      [() => writeHuge(path), 'has more than'],
    ]
    for (const [make, said] of faults) {
      make()

      expect([said, await service.reread(), await status(stays.text), await status(never.text)]).toEqual([
        said,
        refused(said),
        200,
        401,
      ])
    }
    replaceFile(path, [never.line])
    expect([await service.reread(), await status(stays.text), await status(never.text)]).toEqual([read(1), 401, 200])
  })

  test('counts only as a whole while a program cuts it and writes it again in place', async () => {
    // Most cuts are in a label, so what remains is a file without an error.
    const tokens = Array.from({ length: 1000 }, () => makeFileToken('me', 'write', 'label '.repeat(30)))
    const lines = tokens.map(({ line }) => line)
    await using service = await serveTokensFile(lines)
    await cutAgainAndAgain(service.path, lines.join('\n'), () => service.server.signal('SIGHUP'))
    await service.reread()
    const reads = service.changes().filter(({ msg }) => msg === READ)

    expect(reads.length).toBeGreaterThan(0)
    expect(reads).toEqual(reads.map(() => read(tokens.length)))
    // The server did not take the file at each signal, so it has seen cuts.
    expect(reads.length).toBeLessThan(HANGUPS)
    expect(await service.status(tokens.at(-1)?.text ?? '')).toBe(200)
  })

  test.skipIf(lacks(SETPRIV))('keeps its tokens while the server may not read it, and the log says why', async () => {
    const { text: token, line } = makeFileToken()
    await using service = await serveTokensFile([line], { under: RESTRICTED })
    const outcome = async () => [await service.reread(), await service.status(token)]
    chmodSync(service.path, 0o000)
    const hidden = await outcome()
    chmodSync(service.path, 0o400)

    expect(hidden).toEqual([refused('this user may not read it'), 200])
    expect(await outcome()).toEqual([read(1), 200])
  })

  test('is read through the symbolic links that Kubernetes swaps', async () => {
    const [old, next] = [makeFileToken(), makeFileToken()]
    using made = makeDatabase()
    const { path, update } = mountSecret(join(made.folder, 'mount'), [old.line])
    await using server = await serve(made.database, ['--tokens-file', path])
    const status = async (token: string) => (await server.request('GET', '/plants', { token })).status
    const before = [await status(old.text), await status(next.text)]
    update([next.line])
    await until('the server read the file', () => server.stdout().includes(READ))

    expect([before, await status(old.text), await status(next.text)]).toEqual([[200, 401], 401, 200])
  })
})
