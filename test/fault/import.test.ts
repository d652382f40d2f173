import { describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { queryAll } from '../store/sqlite/files.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { createTokenIn } from '../support/tokens.ts'
import { QUIET, restart } from './restart.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds } from './rounds.ts'
import { until } from './watch.ts'

/** Enough that an import takes many batches. */
const LINES = rounds(60_000, 1_000_000)
/** The promise for a create while an import goes on. */
const CREATE_WAIT_MAX_MS = 100
const CONNECTIONS = 4
const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** A database of user `me`, and a file of lines to be imported for user `them`, in no order. */
async function makeInput(lines = LINES) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const file = join(folder.path, 'plants.jsonl')
  const token = await createTokenIn(database)
  const ids = Array.from({ length: lines }, (_, index) => (index * 7919) % 1_000_003)
  writeFileSync(
    file,
    ids.map((id) => `{"user":"them","id":${id},"name":"Monstera ${id}","tag":"evergreen"}\n`).join(''),
  )
  const start = (...args: readonly string[]) => {
    const { child, ended } = startProgram([...COMMAND, 'import', file, '--database', database, ...args])
    return {
      kill: (signal: NodeJS.Signals) => child.kill(signal),
      isOver: () => child.exitCode !== null || child.signalCode !== null,
      async ended() {
        const { stderr, exitCode } = await ended
        return { stderr, exitCode }
      },
    }
  }
  return {
    folder: folder.path,
    database,
    file,
    token,
    start,
    imported: () => {
      const [[count] = []] = queryAll(database, "select count(*) from plants where name like 'Monstera %'")
      return Number(count)
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

describe('import', () => {
  test(
    'beside a server lets no create wait for long, and refuses none',
    async () => {
      using made = await makeInput()
      await using server = await serve(made.database, QUIET)
      const statuses = new Set<number>()
      const waitsMs: number[] = []
      let isOver = false
      let nextId = 1
      const create = async () => {
        while (!isOver) {
          const body = { id: nextId++, name: 'Fern' }
          const begunMs = performance.now()
          const response = await server.request('POST', '/plants', { token: made.token, body })
          await response.text()
          if (!isOver) waitsMs.push(performance.now() - begunMs)
          statuses.add(response.status)
          await Bun.sleep(1)
        }
      }
      // The first write starts the thread that writes.
      await server.request('POST', '/plants', { token: made.token, body: { id: 0, name: 'Fern' } })
      const importing = made.start()
      await until('some lines are in', () => made.imported() > 0)
      const creating = Array.from({ length: CONNECTIONS }, create)
      const { stderr, exitCode } = await importing.ended()
      isOver = true
      await Promise.all(creating)

      waitsMs.sort((a, b) => a - b)
      const at = (share: number) => Math.round(waitsMs[Math.floor(share * (waitsMs.length - 1))] ?? 0)
      console.log(
        `${waitsMs.length} creates while ${LINES} lines came in: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} ms`,
      )
      expect(stderr).toContain(`Imported ${LINES} lines into ${made.database}: created ${LINES} plants,`)
      expect([exitCode, [...statuses]]).toEqual([0, [200]])
      // The short form runs beside other tests: a time that it measures says nothing.
      if (IS_LONG) expect(at(0.99)).toBeLessThan(CREATE_WAIT_MAX_MS)
      expect(await server.end()).toBe(0)
    },
    ROUNDS_TIMEOUT_MS,
  )

  test.each(IS_LONG ? SIGNALS : SIGNALS.slice(0, 1))(
    'that is stopped half-way by %s says how many lines are in, and can be gone on with',
    async (signal) => {
      using made = await makeInput()
      const importing = made.start()
      await until('some lines are in', () => made.imported() > 0)
      importing.kill(signal)
      const { stderr, exitCode } = await importing.ended()
      const [, told] =
        /^Stopped by SIG\w+: (\d+) of \d+ lines are in\. Run the same command again with --on-conflict skip to import the rest\.\n$/m.exec(
          stderr,
        ) ?? []
      const imported = made.imported()
      const rest = await made.start('--on-conflict', 'skip').ended()

      expect(exitCode).toBe(signal === 'SIGINT' ? 130 : 143)
      expect(Number(told)).toBe(imported)
      expect(imported).toBeLessThan(LINES)
      expect(rest.stderr).toContain(`: created ${LINES - imported} plants, skipped ${imported},`)
      expect(made.imported()).toBe(LINES)
    },
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'that is killed leaves whole batches, no file of its own, and a database that the next server takes',
    async () => {
      using made = await makeInput()
      const importing = made.start()
      await until('some lines are in', () => made.imported() > 0)
      importing.kill('SIGKILL')
      await importing.ended()
      const names = readdirSync(made.folder).filter((name) => name.startsWith('plantstore-import'))
      await (await restart(made.database)).kill()
      const check = await runPlantstore(['check', '--database', made.database])

      expect(names).toEqual([])
      expect(check.exitCode).toBe(0)
      expect(made.imported()).toBeWithin(1, LINES)
    },
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'with --atomic stores nothing when it is stopped, says that others wait, and else stores all',
    async () => {
      using made = await makeInput()
      await using server = await serve(made.database, QUIET)
      const importing = made.start('--atomic')
      await until('it has begun to write', async () => {
        const body = { id: 1, name: 'Fern' }
        const response = await server.request('POST', '/plants', { token: made.token, body })
        await server.request('DELETE', '/plants/1', { token: made.token })
        return response.status === 503 || importing.isOver()
      })
      importing.kill('SIGTERM')
      const { stderr, exitCode } = await importing.ended()
      const stoppedWith = made.imported()
      const whole = await made.start('--atomic').ended()

      // On a fast machine it is over before the server has given up waiting for it.
      if (exitCode !== 0) {
        expect(exitCode).toBe(143)
        expect(stderr).toContain('Stopped by SIGTERM: nothing was imported. Run the same command again.\n')
        expect(stoppedWith).toBe(0)
        expect(whole.stderr).toContain('Creates and deletes of servers wait until all is in, or are refused.\n')
        expect(whole.stderr).toContain(`Imported ${LINES} lines into ${made.database}: created ${LINES} plants,`)
      }
      expect(made.imported()).toBe(LINES)
    },
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'that waits for stdin ends by the first signal, and stores nothing',
    async () => {
      using made = await makeInput(1)
      const child = Bun.spawn([...COMMAND, 'import', '--database', made.database], { stdio: ['pipe', 'pipe', 'pipe'] })
      child.stdin.write('{"user":"them","id":1,"name":"Monstera 1"}\n')
      await child.stdin.flush()
      const reader = child.stderr.getReader()
      const first = new TextDecoder().decode((await reader.read()).value)
      child.kill('SIGTERM')
      const rest = new TextDecoder().decode((await reader.read()).value)

      expect(await child.exited).toBe(143)
      expect(first).toStartWith('What is read is kept in ')
      expect(rest).toBe('Stopped by SIGTERM: nothing was imported. Run the same command again.\n')
      expect(made.imported()).toBe(0)
    },
    ROUNDS_TIMEOUT_MS,
  )
})
