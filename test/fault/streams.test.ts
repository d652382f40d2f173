import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { answerOf } from '../cli/support/service-client.ts'
import { residentMib } from '../support/process.ts'
import { isBusy, SLACK_MS } from '../support/slack.ts'
import { until } from '../support/until.ts'
import { rounds } from './rounds.ts'
import { makeTestDatabase } from './test-database.ts'

const MIB = 1024 ** 2
/** How much of unread lines a server keeps: see src/log.ts. */
const KEPT_MIB = 8
/** More than a pipe holds. */
const PIPE_MIB = 1
/** Lines that are logged before memory is measured, and after. */
const BEFORE_MIB = 3 * KEPT_MIB
const AFTER_MIB = rounds(40, 1024)
/** Much less than the lines that are logged. */
const GROWTH_MAX_MIB = rounds(32, 40)
/** Not like a token, and so long that its log line is almost 2 KiB, the limit of a line. */
const LONG_PATH = `/${'x-'.repeat(900)}`
const AT_ONCE = 16
/** Few in the short form, which pause, so that most of the work is the log. */
const CONNECTIONS = rounds(4, 64)
const THINK_MS = rounds(5, 0)
/** Successes that show that writes go on. */
const ENOUGH = 500
/** --drain, the time for the last lines, and the machine's own delays. */
const END_LIMIT_MS = 1000 + 500 + SLACK_MS

/** A shell script that passes on the log until the server listens. Then `reader` takes its place. */
const withReader = (reader: string) => `mkfifo pipe
  { while read -r line; do echo "$line"; case $line in *address*) break; esac; done; exec ${reader} 2>&-; } <pipe &
  echo "reader $!"
  exec "$@" >pipe`

/** Starts a server under load, whose log a program reads. */
async function serveUnderLoad(reader: string) {
  const db = await makeTestDatabase()
  const { history } = db
  const server = await db.serve(['--drain', '1s', '--log-level', 'info'], {
    under: ['sh', '-c', withReader(reader), 'sh'],
    cwd: db.folder,
  })
  const load = db.startLoad(server, { connections: CONNECTIONS, thinkMs: THINK_MS })
  const readerPid = Number(/^reader (\d+)$/m.exec(server.stdout())?.[1])
  return {
    ...server,
    folder: db.folder,
    signalReader: (signal: 'SIGSTOP' | 'SIGCONT') => process.kill(readerPid, signal),
    /** Makes the server log an amount of lines, by requests with long paths. */
    async logMuch(mib: number): Promise<void> {
      let left = Math.ceil((mib * MIB) / LONG_PATH.length)
      const ask = async () => {
        while (left-- > 0) expect(await answerOf(server.request('GET', LONG_PATH))).toMatchObject({ status: 404 })
      }
      await Promise.all(Array.from({ length: AT_ONCE }, ask))
    },
    /** Ends the load and the server. Throws unless all writes succeeded and are stored. */
    async endWell(): Promise<void> {
      await until('plants are stored', (see) => see(history.counts()).acknowledged > ENOUGH)
      await load.stop()
      const startMs = performance.now()
      expect(await server.end()).toBe(0)
      expect(performance.now() - startMs).toBeLessThan(END_LIMIT_MS)
      expect(history.counts()).toMatchObject({ refused: 0, unknown: 0 })
      db.check()
    },
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]()
      await load.stop()
      // The reader may have ended by itself.
      if (existsSync(`/proc/${readerPid}`)) process.kill(readerPid, 'SIGKILL')
    },
  }
}

describe('a server under load', () => {
  test('goes on while nobody reads its log, ends in time, and uses no more memory', async () => {
    await using server = await serveUnderLoad('sleep 1000 >&-')

    await server.logMuch(BEFORE_MIB)
    const beforeMib = residentMib(server.pid)
    await server.logMuch(AFTER_MIB)
    // On a busy machine memory is collected late, but what is kept would stay.
    const { grownMib } = await until('memory is as before, or almost', () => {
      const grownMib = residentMib(server.pid) - beforeMib
      return (grownMib < GROWTH_MAX_MIB || !isBusy()) && { grownMib }
    })

    console.log(`${AFTER_MIB} MiB of lines, memory grew from ${beforeMib.toFixed()} MiB by ${grownMib.toFixed()} MiB`)
    expect(grownMib).toBeLessThan(GROWTH_MAX_MIB)
    await server.endWell()
  })

  test('ends with 3 in time if the store fails while nobody reads its log', async () => {
    await using server = await serveUnderLoad('sleep 1000 >&-')
    await server.logMuch(PIPE_MIB)
    const startMs = performance.now()
    rmSync(join(server.folder, 'plantstore.db'))

    expect(await server.ended()).toBe(3)
    expect(performance.now() - startMs).toBeLessThan(END_LIMIT_MS)
  })

  test('drops lines while the reader of its log is stopped, and then writes whole lines', async () => {
    await using server = await serveUnderLoad('cat >log')
    const log = () => readFileSync(join(server.folder, 'log'), 'utf8')
    server.signalReader('SIGSTOP')
    await server.logMuch(BEFORE_MIB)

    server.signalReader('SIGCONT')
    await until('the reader has the last line', async (see) => {
      const answer = await server.request('GET', '/healthz')
      return see(log()).includes(answer.headers.get('x-request-id') ?? 'none')
    })
    await server.endWell()
    await until('the reader has the end of the log', (see) => see(log()).endsWith('"msg":"ended"}\n'))

    const lines = log().trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(lines.map(() => 'info'))
    // The log has as much as the server keeps, and not as much as was logged.
    expect(log().length / MIB).toBeWithin(KEPT_MIB / 2, BEFORE_MIB / 2)
  })
})
