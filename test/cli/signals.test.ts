import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { startProgram } from '../support/program.ts'
import { SLACK_MS } from '../support/slack.ts'
import { sendHalf } from '../support/slow.ts'
import { createTokenIn } from '../support/tokens.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

/** How a shell says that SIGTERM ended a process. */
const TERMINATED = 143

const halfBody = (token: string) =>
  `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"id"`

describe('a signal', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s ends a server with 0 within --drain, and its database is whole',
    async (signal) => {
      await using service = await serveDatabase(['--drain', '2s'])
      const { server, token, database } = service
      const created = await server.request('POST', '/plants', { token, body: '{"id":1,"name":"Fern"}' })
      const hadWal = existsSync(`${database}-wal`)
      const startMs = performance.now()
      server.signal(signal)
      const exitCode = await server.ended()

      expect(exitCode).toBe(0)
      expect(performance.now() - startMs).toBeLessThan(2000 + SLACK_MS)
      expect({ created: created.status, hadWal }).toEqual({ created: 200, hadWal: true })
      expect([existsSync(`${database}-wal`), existsSync(`${database}-shm`)]).toEqual([false, false])
      await using again = await serve(database)
      expect(await (await again.request('GET', '/plants', { token })).json()).toEqual([{ name: 'Fern' }])
      expect(await runPlantstore(['check', '--database', database])).toMatchObject({ exitCode: 0 })
    },
  )

  test('ends the server at once when it comes a second time', async () => {
    await using service = await serveDatabase(['--drain', '1h'])
    const { server, token, database } = service
    using _part = sendHalf(server.port, halfBody(token))
    await server.request('GET', '/plants', { token })
    server.signal('SIGTERM')
    while (!server.stdout().includes('"ending"')) await Bun.sleep(5)
    const startMs = performance.now()
    server.signal('SIGTERM')

    expect(await server.ended()).toBe(TERMINATED)
    expect(performance.now() - startMs).toBeLessThan(SLACK_MS)
    expect(await runPlantstore(['check', '--database', database])).toMatchObject({ exitCode: 0 })
  })

  test.each([0, 10, 20, 40, 80, 160])(
    'ends a server %d ms after its start, and leaves a usable database',
    async (delayMs) => {
      using made = makeDatabase()
      const { database } = made
      const args = ['serve', '--listen', '127.0.0.1:0', '--database', database]
      const env = { PATH: process.env.PATH ?? '' }
      const { child, ended } = startProgram([...COMMAND, ...args], { env })
      await Bun.sleep(delayMs)
      child.kill('SIGTERM')
      const { stderr } = await ended

      expect([0, TERMINATED]).toContain(child.exitCode ?? (child.signalCode === 'SIGTERM' ? TERMINATED : -1))
      expect(stderr).toBe('')
      await createTokenIn(database)
      expect(await made.run('check')).toMatchObject({ exitCode: 0 })
    },
  )
})
