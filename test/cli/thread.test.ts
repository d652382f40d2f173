import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'

describe.skipIf(lacks(STRACE))('a server that cannot start its writing thread', () => {
  test('logs the reason in one line and ends with 3', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database)
    const trace = join(folder.path, 'trace')
    const stop = ['strace', '-D', '-f', '-o', trace, '-e', 'trace=listen', '-e', 'inject=listen:signal=SIGSTOP']

    const starting = serve(database, [], { under: stop })
    // It has opened the database to read it, and starts the thread once it listens.
    const pid = await stoppedProcess(trace)
    rmSync(`${database}-wal`)
    mkdirSync(`${database}-wal`)
    process.kill(pid, 'SIGCONT')
    await using server = await starting

    expect(await server.ended()).toBe(3)
    const lines = server.stdout().split('\n')
    expect(lines.filter((line) => line.includes('"level":"fatal"'))).toEqual([
      expect.stringContaining('the thread that writes has failed'),
    ])
    expect(server.stderr()).toBe('')
  })
})

/** Waits until strace says that it has stopped a process. Resolves to its id. */
async function stoppedProcess(trace: string): Promise<number> {
  const read = () => (existsSync(trace) ? readFileSync(trace, 'utf8') : '')
  return Number(await until('a process is stopped', () => /^(\d+) .*stopped by SIGSTOP/m.exec(read())?.[1]))
}
