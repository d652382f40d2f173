import { describe, expect, test } from 'bun:test'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { makeDatabase, serveDatabase } from '../cli/support/database.ts'
import { COMMAND } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { freePort } from '../support/postgres-system.ts'
import { startProgram } from '../support/program.ts'
import type { Random } from '../support/random.ts'
import { untilThreads } from '../support/threads.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { testRounds } from './rounds.ts'

const THREADS = 3
/** So many connections are on all of three threads, but once in 15 million runs: the kernel spreads them at random. */
const CONNECTIONS = 40
const STEPS = 300
const IDS = 12
const QUOTA = 8

/** Several connections to a server. Each keeps to the thread that has accepted it. */
function connectMany(port: number, token: string) {
  const agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  return {
    send: (connection: number, method: string, path: string, body?: object, headers: object = {}) =>
      new Promise<{ status: number; text: string; etag: string }>((resolve, reject) => {
        const agent = agents[connection % CONNECTIONS]
        const json = body === undefined ? {} : { 'content-type': 'application/json' }
        const all = { authorization: `Bearer ${token}`, ...json, ...headers }
        request({ port, host: '127.0.0.1', agent, method, path, headers: all }, async (answer) => {
          const text = Buffer.concat(await answer.toArray()).toString()
          resolve({ status: answer.statusCode ?? 0, text, etag: String(answer.headers.etag) })
        })
          .on('error', reject)
          .end(body && JSON.stringify(body))
      }),
    [Symbol.dispose]() {
      for (const agent of agents) agent.destroy()
    },
  }
}

/** A server with three threads, all of which listen. */
async function serveThreads(flags: readonly string[] = []) {
  const service = await serveDatabase(['--threads', `${THREADS}`, ...flags])
  await untilThreads(service.server.port, THREADS)
  return service
}

describe('a server with three threads', () => {
  testRounds('answers over connections of all threads as a model does', { short: 1, long: 50 }, async (random) => {
    await using service = await serveThreads(['--quota-plants', String(QUOTA)])
    using client = connectMany(service.server.port, service.token)
    const plants = new Map<number, string>()
    const pick = () => random(CONNECTIONS)

    for (let step = 0; step < STEPS; step++) await takeStep(client, plants, random, pick)
  })

  test('refuses a token on every connection once its command has ended', async () => {
    await using service = await serveThreads()
    const { server, token } = service
    const kept = await createTokenIn(service.database)
    using client = connectMany(server.port, kept)
    const listAll = () =>
      Promise.all(Array.from({ length: CONNECTIONS }, (_, each) => client.send(each, 'GET', '/plants?limit=1')))
    // Twice, so that every thread has it in its cache.
    expect(statusesOf([...(await listAll()), ...(await listAll())])).toEqual([200])

    await service.run('token', 'revoke', '--yes', String((await service.json('token', 'list')).at(-1).id))

    expect(statusesOf(await listAll())).toEqual([401])
    expect((await server.request('GET', '/plants?limit=1', { token })).status).toBe(200)
  })

  test('deletes a plant once, however many connections ask for it at the same time with its ETag', async () => {
    await using service = await serveThreads()
    using client = connectMany(service.server.port, service.token)
    await client.send(0, 'POST', '/plants', { id: 1, name: 'Fern' })
    const { etag } = await client.send(0, 'GET', '/plants/1')

    const answers = await Promise.all(
      Array.from({ length: CONNECTIONS }, (_, each) =>
        client.send(each, 'DELETE', '/plants/1', undefined, { 'if-match': etag }),
      ),
    )

    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(CONNECTIONS - 1)
  })

  test('is exact about a quota, however many connections create at the same time', async () => {
    await using service = await serveThreads(['--quota-plants', String(QUOTA)])
    using client = connectMany(service.server.port, service.token)

    const answers = await Promise.all(
      Array.from({ length: CONNECTIONS }, (_, id) => client.send(id, 'POST', '/plants', { id, name: 'Fern' })),
    )

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(QUOTA)
    expect(JSON.parse((await client.send(1, 'GET', '/plants')).text)).toHaveLength(QUOTA)
  })
})

const statusesOf = (answers: readonly { readonly status: number }[]) => [
  ...new Set(answers.map(({ status }) => status)),
]

/** Creates, deletes or lists over any connection, and expects what the model has. */
async function takeStep(
  client: ReturnType<typeof connectMany>,
  plants: Map<number, string>,
  random: Random,
  pick: () => number,
): Promise<void> {
  const id = random(IDS)
  if (random(3) === 0) {
    const { status } = await client.send(pick(), 'DELETE', `/plants/${id}`)
    expect(status).toBe(plants.delete(id) ? 204 : 404)
  } else {
    const name = `Fern ${random(1000)}`
    const { status } = await client.send(pick(), 'POST', '/plants', { id, name })
    const refusal = plants.has(id) ? 409 : 403
    expect(status).toBe(plants.has(id) || plants.size >= QUOTA ? refusal : 200)
    if (status === 200) plants.set(id, name)
  }
  const expected = [...plants].sort(([a], [b]) => a - b).map(([, name]) => ({ name }))
  const lists = await Promise.all([pick(), pick()].map((each) => client.send(each, 'GET', '/plants?limit=20')))
  expect(lists.map(({ text }) => JSON.parse(text))).toEqual([expected, expected])
}

testRounds(
  'of two servers that start at the same address at once, exactly one serves',
  { short: 2, long: 100 },
  async () => {
    const port = freePort()
    using first = makeDatabase()
    using second = makeDatabase()
    const flags = ['serve', '--threads', `${THREADS}`, '--listen', `127.0.0.1:${port}`, '--log-format', 'json']
    const started = [first, second].map(({ database }) => startProgram([...COMMAND, ...flags, '--database', database]))
    const ended = new Set<number>()
    for (const [index, { ended: end }] of started.entries()) void end.then(() => ended.add(index))

    await until('one of them has ended', () => ended.size > 0)
    await untilThreads(port, THREADS)

    const [loser = 0] = ended
    const winner = started[1 - loser]
    winner?.child.kill('SIGTERM')
    const { stderr } = (await started[loser]?.ended) ?? {}
    expect([ended.size, await started[loser]?.child.exited, await winner?.child.exited]).toEqual([1, 1, 0])
    expect(stderr).toContain('another process listens there')
  },
)

test('a thread that ends by itself ends the server with exit code 3, and the log says which', async () => {
  using folder = makeFolder()
  const preload = join(folder.path, 'preload.ts')
  // The first message of a thread that answers says that it listens.
  await Bun.write(
    preload,
    `const Real = Worker
     globalThis.Worker = class extends Real {
       constructor(url) {
         super(url)
         if (String(url).includes('http-thread')) this.addEventListener('message', () => this.terminate())
       }
     }`,
  )
  const main = join(import.meta.dir, '../../src/main.ts')
  const flags = ['serve', '--threads', '2', '--listen', '127.0.0.1:0', '--log-format', 'json']
  const database = join(folder.path, 'plantstore.db')
  const { ended } = startProgram([process.execPath, '--preload', preload, main, ...flags, '--database', database])

  const { stdout, exitCode } = await ended

  expect(exitCode).toBe(3)
  expect(stdout).toContain('"thread":1,"reason":"it has ended","msg":"a thread that answers requests has failed')
})
