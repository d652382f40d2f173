import { describe, expect, test } from 'bun:test'
import { readFileSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { randomNumbers } from '../support/random.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { startHistory } from './history.ts'
import { startLoad } from './load.ts'
import { residentMib } from './process.ts'
import { ROUNDS_TIMEOUT_MS, rounds } from './rounds.ts'
import { until } from './watch.ts'

const MIB = 1024 ** 2
/** What is kept of lines that nobody takes: see src/log.ts. */
const KEPT_MIB = 8
/** More than a pipe holds. */
const PIPE_MIB = 1
/** Lines that are logged before memory is looked at, and after. */
const BEFORE_MIB = 4 * KEPT_MIB
const AFTER_MIB = rounds(64, 1024)
/** What memory may grow by: much less than the lines that are logged. */
const GROWTH_MAX_MIB = 40
/** Like no token, and so long that its line is almost 2 KiB: a longer one would be cut. */
const LONG_PATH = `/${'x-'.repeat(900)}`
const AT_ONCE = 16
/** Successes of the load that show that there are such. */
const ENOUGH = 500
/** --drain, what is added for the last lines, and the machine's own delays. */
const END_LIMIT_MS = 1000 + 500 + SLACK_MS

/** In a shell: passes on what the server logs until it listens, and becomes what does with the rest what it likes. */
const withReader = (reader: string) => `mkfifo pipe
  { while read -r line; do echo "$line"; case $line in *address*) break; esac; done; exec ${reader} 2>&-; } <pipe &
  echo "reader $!"
  exec "$@" >pipe`

/** Starts a server by a script of the shell, in which "$@" is what starts it, and has it work under load. */
async function serveUnderLoad(script: string) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const token = await createTokenIn(database)
  const server = await serve(database, ['--drain', '1s', '--log-level', 'info'], {
    under: ['sh', '-c', script, 'sh'],
    cwd: folder.path,
  })
  const history = startHistory()
  const load = startLoad({ url: server.url, token, history, random: randomNumbers(1) })
  const readerPid = Number(/^reader (\d+)$/m.exec(server.stdout())?.[1])
  return {
    ...server,
    folder: folder.path,
    signalReader: (signal: 'SIGSTOP' | 'SIGCONT') => process.kill(readerPid, signal),
    /** Has so much logged, by requests whose lines are long. */
    async logMuch(mib: number): Promise<void> {
      let left = Math.ceil((mib * MIB) / LONG_PATH.length)
      const ask = async () => {
        while (left-- > 0) expect((await server.request('GET', LONG_PATH)).status).toBe(404)
      }
      await Promise.all(Array.from({ length: AT_ONCE }, ask))
    },
    /** Ends the load and the server. Throws unless all was done, and is there. Returns how many writes that were. */
    async endWell(): Promise<number> {
      await until('plants are stored', () => history.counts().acknowledged > ENOUGH)
      await load.stop()
      const startMs = performance.now()
      expect(await server.end()).toBe(0)
      expect(performance.now() - startMs).toBeLessThan(END_LIMIT_MS)
      const { acknowledged, ...others } = history.counts()
      expect(others).toEqual({ refused: 0, cutOff: 0 })
      history.check(database)
      return acknowledged
    },
    async [Symbol.asyncDispose]() {
      await server.kill()
      await load.stop()
      try {
        if (!Number.isNaN(readerPid)) process.kill(readerPid, 'SIGKILL')
      } catch {
        // It has read to the end.
      }
      folder[Symbol.dispose]()
    },
  }
}

describe('a server under load', () => {
  test(
    'goes on while nobody reads its log, ends in time, and its memory stays as it is',
    async () => {
      await using server = await serveUnderLoad(withReader('sleep 1000 >&-'))

      await server.logMuch(BEFORE_MIB)
      const beforeMib = residentMib(server.pid)
      await server.logMuch(AFTER_MIB)
      const growthMib = residentMib(server.pid) - beforeMib

      console.log(
        `${AFTER_MIB} MiB of lines, memory grew from ${beforeMib.toFixed()} MiB by ${growthMib.toFixed()} MiB`,
      )
      expect(growthMib).toBeLessThan(GROWTH_MAX_MIB)
      await server.endWell()
    },
    ROUNDS_TIMEOUT_MS,
  )

  test('ends with 3 in time if the store fails while nobody reads its log', async () => {
    await using server = await serveUnderLoad(withReader('sleep 1000 >&-'))
    await server.logMuch(PIPE_MIB)
    const startMs = performance.now()
    rmSync(join(server.folder, 'plantstore.db'))

    expect(await server.ended()).toBe(3)
    expect(performance.now() - startMs).toBeLessThan(END_LIMIT_MS)
  })

  test('drops lines while its reader is stopped; when it reads on, what it gets are whole lines', async () => {
    await using server = await serveUnderLoad(withReader('cat >log'))
    const log = () => readFileSync(join(server.folder, 'log'), 'utf8')
    server.signalReader('SIGSTOP')
    await server.logMuch(BEFORE_MIB)

    server.signalReader('SIGCONT')
    await until('the reader has the last line', async () => {
      const answer = await server.request('GET', '/healthz')
      return log().includes(answer.headers.get('x-request-id') ?? 'none')
    })
    await server.endWell()
    await until('the reader has all of the log', () => log().endsWith('"msg":"ended"}\n'))

    const lines = log().trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(lines.map(() => 'info'))
    // It is as long as what was kept, and not as what was logged.
    expect(log().length / MIB).toBeWithin(KEPT_MIB / 2, BEFORE_MIB / 2)
  })

  test('goes on with its stderr closed, which is no place for a file of its own, and logs every request', async () => {
    await using server = await serveUnderLoad('exec "$@" 2>&-')
    const place = readlinkSync(`/proc/${server.pid}/fd/2`)

    const writes = await server.endWell()

    expect(place).toBe('/dev/null')
    expect(server.stdout().match(/"path":"\/plants/g)).toHaveLength(writes)
  })
})
