import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { prepareThreads } from '../../src/cli/serve/threads.ts'
import { makeDatabase } from '../cli/support/database.ts'
import { answerOf } from '../cli/support/service-client.ts'
import { COMMAND, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { freePort } from '../support/postgres-system.ts'
import { countDescriptors, countOpen, PROCESS_TOOLS } from '../support/process.ts'
import { startProgram } from '../support/program.ts'
import { type Connection, formatRequest, openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { rounds, testRounds } from './rounds.ts'

const THREADS = 3
/** Clients that connect without a pause. */
const CLIENTS = 8
/** How long a server waits for the lock of its port. */
const CLAIM_MAX_WAIT_MS = 2000
/** Longer than any test. */
const FOREVER_MS = 2 ** 31 - 1
/** So many descriptors a server may have. */
const DESCRIPTORS = 40
/** The sockets of the system that a server reads before it listens. */
const TABLE = '/proc/self/net/tcp'

/** Holds the lock of a port, as any program can. */
const holdLock = (port: number) => Bun.listen({ unix: `\0plantstore:${port}`, socket: { data() {} } })

test('a server waits for another start at its port, but not for ever', async () => {
  const port = freePort()
  const holder = holdLock(port)
  using made = makeDatabase()
  const startMs = performance.now()

  await using server = await serve(made.database, ['--threads', '2', '--listen', `127.0.0.1:${port}`])

  expect(performance.now() - startMs).toBeGreaterThan(CLAIM_MAX_WAIT_MS)
  expect(await answerOf(server.request('GET', '/healthz'))).toMatchObject({ status: 200 })
  holder.stop(true)
})

testRounds('of two servers that start at the same address at once, exactly one serves', { short: 2, long: 100 }, () =>
  startTwo([]),
)
testRounds(
  'of two servers that start at once at an address whose lock another program holds, exactly one serves',
  { short: 1, long: 20, needs: [STRACE] },
  async () => {
    const port = freePort()
    const holder = holdLock(port)
    // Between their look at which sockets listen and their own, each gives the other one time for the same.
    const slow = ['-P', TABLE, '-e', 'inject=read,pread64:delay_exit=3s']
    await startTwo(['strace', '-D', '-f', '-qq', '-o', '/dev/null', ...slow], port)
    holder.stop(true)
  },
)
testRounds(
  'of two servers that start at the same address at once and cannot read which sockets listen, exactly one serves',
  { short: 1, long: 20, needs: [STRACE] },
  async () => {
    using folder = makeFolder()
    const trace = join(folder.path, 'trace')
    await startTwo(['strace', '-D', '-f', '-A', '-o', trace, '-P', TABLE, '-e', 'inject=openat:error=EACCES'])
    expect(await Bun.file(trace).text()).toContain('(INJECTED)')
  },
)

async function startTwo(under: readonly string[], port = freePort()): Promise<void> {
  using first = makeDatabase()
  using second = makeDatabase()
  const flags = ['serve', '--threads', `${THREADS}`, '--listen', `127.0.0.1:${port}`, '--log-format', 'json']
  const started = [first, second].map(({ database }) =>
    startProgram([...under, ...COMMAND, ...flags, '--database', database]),
  )
  const ended = new Set<number>()
  for (const [index, { ended: end }] of started.entries()) void end.then(() => ended.add(index))

  await until('one of them has ended', (see) => see(ended).size > 0)
  const [loser = 0] = ended
  const winner = started[1 - loser]
  await until('the other one serves', (see) => see(winner?.stdout())?.includes('"listening"'))

  winner?.child.kill('SIGTERM')
  const { stderr } = (await started[loser]?.ended) ?? {}
  expect([ended.size, await started[loser]?.child.exited, await winner?.child.exited]).toEqual([1, 1, 0])
  expect(stderr).toContain('another process listens there')
}

/** Has clients connect without a pause while a server starts and after, until it is over. `use` gets each connection. */
function connectTo(port: number, use: (connection: Connection) => unknown) {
  let isOver = false
  const client = async () => {
    while (!isOver) {
      const connection = await openConnection(port).catch(() => undefined)
      if (connection !== undefined) await use(connection)
    }
  }
  const clients = Array.from({ length: CLIENTS }, client)
  const end = async () => {
    isOver = true
    await Promise.all(clients)
  }
  return { end, [Symbol.asyncDispose]: end }
}

test('a start resets no connection that clients open meanwhile', async () => {
  const starts = rounds(10, 300)
  const port = freePort()
  const counts = { answered: 0, reset: 0 }
  for (let start = 0; start < starts; start++) {
    using made = makeDatabase()
    const clients = connectTo(port, (connection) =>
      connection.request(formatRequest('GET', '/healthz', '', undefined, 'Connection: close\r\n')).then(
        () => counts.answered++,
        () => counts.reset++,
      ),
    )
    await using _server = await serve(made.database, ['--threads', `${THREADS}`, '--listen', `127.0.0.1:${port}`])
    await clients.end()
  }

  console.log(`${starts} starts: ${counts.answered} connections were answered`)
  expect(counts.answered).toBeGreaterThan(starts)
  expect(counts.reset).toBe(0)
})

test.skipIf(lacks(PROCESS_TOOLS)).each([1, THREADS])(
  'clients that take all descriptors while a server starts do not end it, with --threads %i',
  async (threads) => {
    for (let round = 0; round < rounds(2, 20); round++) {
      const port = freePort()
      using made = makeDatabase()
      const token = await createTokenIn(made.database)
      const held: Connection[] = []
      await using clients = connectTo(port, (connection) => {
        if (held.push(connection) > 2 * DESCRIPTORS) void clients.end()
        void connection.send('GET /healthz HTTP/1.1\r\n')
      })
      const flags = ['--threads', `${threads}`, '--listen', `127.0.0.1:${port}`]
      await using server = await serve(made.database, flags, { under: ['prlimit', `--nofile=${DESCRIPTORS}`] })
      await until('no descriptor is left', (see) => see(countDescriptors(server.pid)) === DESCRIPTORS)
      // That of the main thread, which reads, and one of each other thread, also of the one that writes.
      const opened = () => countOpen(server.pid, `${made.database}-wal`)
      await until('all have opened the database', (see) => see(opened()) === threads + 1)

      await clients.end()
      for (const { cut } of held) cut()
      const created = await answerOf(server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } }))
      expect(created).toMatchObject({ status: 200 })
    }
  },
)

test('a thread that could not start owes no answer to what it was asked, before its end and after', async () => {
  const { promise: ended, resolve: onThreadEnd } = Promise.withResolvers<void>()
  const never = new Promise<never>(() => {})
  const shutdown = {
    signalled: never,
    failed: never,
    hasFailed: false,
    onFailure() {},
    onThreadEnd: () => onThreadEnd(),
  }
  const threads = prepareThreads(1, shutdown, () => {})

  // Without options it cannot start.
  await threads.start(() => ({ share: { port: new MessageChannel().port1 } }) as never)
  await ended

  expect(await threads.ask({ call: 'readMetrics' }, FOREVER_MS)).toEqual([undefined])
})

test.each([
  // The first message of a thread that answers says that it listens.
  ['ends by itself', `this.addEventListener('message', () => this.terminate())`, 'it has ended'],
  [
    'cannot open the database',
    `this.postMessage = (message, ports) => {
       message.order.start.share.path = '/nothing'
       super.postMessage(message, ports)
     }`,
    'AppError: /nothing cannot be opened: let this user read and write it and the files beside it.',
  ],
])('a thread that %s ends the server with exit code 3, and the log says which', async (_, fault, reason) => {
  using folder = makeFolder()
  const preload = join(folder.path, 'preload.ts')
  await Bun.write(
    preload,
    `const Real = Worker
     globalThis.Worker = class extends Real {
       constructor(url) {
         super(url)
         if (!String(url).includes('http-thread')) return
         ${fault}
       }
     }`,
  )
  const main = join(import.meta.dir, '../../src/main.ts')
  const flags = ['serve', '--threads', '2', '--listen', '127.0.0.1:0', '--log-format', 'json']
  const database = join(folder.path, 'plantstore.db')
  const { ended } = startProgram([process.execPath, '--preload', preload, main, ...flags, '--database', database])

  const { stdout, exitCode } = await ended

  expect(exitCode).toBe(3)
  expect(stdout).toContain(`"thread":1,"reason":"${reason}","msg":"a thread that answers requests has failed`)
})
