import { expect } from 'bun:test'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SLACK_MS } from '../support/slack.ts'
import { makeFileToken, mountSecret, replaceFile } from '../support/tokens-file.ts'
import { until } from '../support/until.ts'
import { startLoad } from './load.ts'
import { rounds, testLong, testRounds } from './rounds.ts'
import { logLines } from './server-log.ts'
import { makeTestDatabase, QUIET, type Server } from './test-database.ts'

const CHANGES = rounds(3, 20)
/** The last ones of them are left to the server to find, and SIGHUP tells of the others. */
const UNTOLD = rounds(1, 20)
const READ = 'the tokens file was read'
/** Successes between two changes. */
const ENOUGH = 50
const READERS = 8
/** The server takes a change within this time. */
const CHANGE_MS = 10_000

/** Puts lines in the place of those of a tokens file. */
type Update = (lines: readonly string[]) => void

const MOUNTS: readonly (readonly [
  name: string,
  short: number,
  (folder: string, lines: readonly string[]) => { path: string; update: Update },
])[] = [
  ['of a Secret', 1, (folder, lines) => mountSecret(join(folder, 'mount'), lines)],
  [
    'that mv replaces',
    // test/cli/tokens-file-changes.test.ts shows the same without load.
    0,
    (folder, lines) => {
      const path = join(folder, 'tokens')
      replaceFile(path, lines)
      return { path, update: (next) => replaceFile(path, next) }
    },
  ],
]

const codeOf = async (server: Server, token: string): Promise<number> => {
  const answer = await server.request('GET', '/plants?limit=5', { token })
  const text = await answer.text()
  return answer.status === 200 ? 200 : JSON.parse(text).error
}

for (const [name, short, mount] of MOUNTS) {
  testRounds(
    `a tokens file ${name} changes under load, and no request of a token that stays fails`,
    { short, long: 1 },
    async (random) => {
      const stays = makeFileToken('stays')
      let now = makeFileToken('changes')
      await using db = await makeTestDatabase({ random })
      const { path, update } = mount(db.folder, [now.line, stays.line])
      const server = await db.serve([...QUIET, '--tokens-file', path])
      const load = startLoad({ url: server.url, token: stays.text, history: db.history, random })
      const codes = new Set<number>()
      let isStopped = false
      const readers = Array.from({ length: READERS }, async () => {
        while (!isStopped) codes.add(await codeOf(server, stays.text))
      })
      const changes = () => logLines(server).filter(({ msg }) => msg === READ).length

      for (let change = 1; change <= CHANGES; change++) {
        const next = makeFileToken('changes')
        expect([await codeOf(server, now.text), await codeOf(server, next.text)]).toEqual([200, 40102])
        const updatedMs = performance.now()
        update(random(2) === 0 ? [next.line, stays.line] : ['# changed', stays.line, next.line])
        if (change <= CHANGES - UNTOLD) server.signal('SIGHUP')
        await until('the server read the file', () => changes() === change)
        expect(performance.now() - updatedMs).toBeLessThan(CHANGE_MS + SLACK_MS)
        const answers = await Promise.all(
          Array.from({ length: READERS }, async () => [
            await codeOf(server, now.text),
            await codeOf(server, next.text),
          ]),
        )
        expect(answers).toEqual(Array(READERS).fill([40102, 200]))
        now = next
        await load.acknowledged(change * ENOUGH)
      }
      isStopped = true
      await Promise.all([load.stop(), ...readers])

      expect([...codes]).toEqual([200])
      expect(db.history.counts()).toMatchObject({ refused: 0, unknown: 0 })
      expect([await server.end(), server.stderr()]).toEqual([0, ''])
    },
  )
}

testLong(
  'a tokens file that a program writes in parts, for longer than the server waits, counts only as a whole',
  async () => {
    const tokens = Array.from({ length: 40 }, () => makeFileToken())
    const last = tokens.at(-1)?.text ?? ''
    await using db = await makeTestDatabase()
    const path = join(db.folder, 'tokens')
    replaceFile(
      path,
      tokens.map(({ line }) => line),
    )
    const server = await db.serve([...QUIET, '--tokens-file', path])
    const added = makeFileToken()
    writeFileSync(path, `${added.line}\n`)
    for (const { line } of tokens) {
      await Bun.sleep(CHANGE_MS / 10)
      appendFileSync(path, `${line}\n`)
      expect([await codeOf(server, last), await codeOf(server, added.text)]).toEqual([200, 40102])
    }
    await until('the server read the file', () => server.stdout().includes(READ))

    expect([await codeOf(server, last), await codeOf(server, added.text)]).toEqual([200, 200])
  },
)
