import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND } from '../support/executable.ts'
import { startProgram } from '../support/program.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { untilAccepted } from './support/connect.ts'
import { makeDatabase } from './support/database.ts'

const ENV = { PATH: process.env.PATH ?? '' }
const HANGUP = 'SIGHUP reloads no settings: restart the server to change them'

/** Whether a process has a handler for a signal: 1 is SIGHUP, 15 is SIGTERM (proc_pid_status(5)). */
function handles(pid: number, signal: number): boolean {
  const [, caught = '0'] = /^SigCgt:\s+(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return ((BigInt(`0x${caught}`) >> BigInt(signal - 1)) & 1n) === 1n
}

/** A database with a socket beside it, and the arguments of a server for both. */
function makeServed(...flags: readonly string[]) {
  const made = makeDatabase()
  const socket = join(made.folder, 'socket')
  const command = [...COMMAND, 'serve', '--listen', `unix:${socket}`, '--database', made.database, ...flags]
  return { ...made, socket, command, status: (path: string) => fetch(`http://localhost${path}`, { unix: socket }) }
}

describe.concurrent('SIGHUP', () => {
  test('never ends a server without a terminal, also while it starts, and makes it log a line', async () => {
    using made = makeServed()
    await createTokenIn(made.database)
    const other = new Database(made.database)
    other.run('begin exclusive')
    const { child, stdout, ended } = startProgram(made.command, { env: ENV })
    const log = () => stdout().match(/(?<="msg":")[^"]+/g) ?? []
    await until('the server handles SIGHUP while it waits for the lock', () => handles(child.pid, 1))
    child.kill('SIGHUP')
    other.close(true)
    await untilAccepted(made.socket, child)
    child.kill('SIGHUP')
    await until('the server has logged both signals', () => log().filter((text) => text === HANGUP).length === 2)
    child.kill('SIGTERM')

    expect((await ended).exitCode).toBe(0)
    // A signal during the start may be seen before or after the server listens.
    expect(log().toSorted()).toEqual([HANGUP, HANGUP, 'ended', 'ending', 'listening'])
  })

  test('ends a server in good order when its terminal is closed, however often it comes', async () => {
    using made = makeServed('--drain-wait', '2s')
    const child = Bun.spawn(made.command, { env: ENV, terminal: {} })
    await untilAccepted(made.socket, child)
    const hadWal = existsSync(`${made.database}-wal`)
    // The kernel sends the first one.
    child.terminal?.close()
    // On a slow machine it has ended already.
    const isEnding = () =>
      made.status('/readyz').then(
        ({ status }) => status === 503,
        () => true,
      )
    await until('the server is ending', isEnding)
    child.kill('SIGHUP')

    expect([await child.exited, child.signalCode]).toEqual([0, null])
    expect([hadWal, existsSync(`${made.database}-wal`)]).toEqual([true, false])
  })

  test('ends every other command at once', async () => {
    using made = makeDatabase()
    const command = [...COMMAND, 'token', 'create', '--batch', '--database', made.database]
    await using child = Bun.spawn(command, { env: ENV, stdin: 'pipe' })
    await until('the command handles SIGTERM', () => handles(child.pid, 15))
    child.kill('SIGHUP')
    await child.exited

    expect(child.signalCode).toBe('SIGHUP')
  })
})
