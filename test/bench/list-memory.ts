/**
 * Measures how much memory the server needs to list a million plants of one user, to a fast and to a slow client. Usage:
 * `bun test/bench/list-memory.ts`. Runs `dist/plantstore`, or the source if there is no such file. Linux only: it reads /proc.
 */
import { Database } from 'bun:sqlite'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

const PLANTS = 1_000_000
const GROWTH_GOAL_MB = 64
const SAMPLE_EVERY_MS = 50
/** The slow reader reads at this rate for `SLOW_FOR_MS`, and then as fast as it can. */
const SLOW_BYTES_PER_SECOND = 2_000_000
const SLOW_FOR_MS = 10_000
/** How long the memory of the server needs to settle after the start. */
const SETTLE_MS = 2000
const LAST_CHUNK = '0\r\n\r\n'

const EXECUTABLE = resolve(import.meta.dir, '../../dist/plantstore')
const COMMAND = existsSync(EXECUTABLE)
  ? [EXECUTABLE]
  : [process.execPath, resolve(import.meta.dir, '../../src/main.ts')]

interface Run {
  readonly reader: string
  readonly idleMb: number
  readonly peakMb: number
  readonly firstByteMs: number
  readonly totalMs: number
  readonly bytes: number
  readonly plants: number
}

using folder = makeFolder()
const database = join(folder.path, 'plantstore.db')
const token = await makePlants(database)
console.log(`${PLANTS} plants in ${toMb(Bun.file(database).size)} MB, served by ${COMMAND.at(-1)}`)

const runs = [
  await measure('fast', async () => {}),
  await measure('slow', async (bytes, sinceMs) => {
    if (sinceMs < SLOW_FOR_MS) await Bun.sleep(Math.max(0, (bytes / SLOW_BYTES_PER_SECOND) * 1000 - sinceMs))
  }),
]
console.table(
  runs.map(({ reader, idleMb, peakMb, firstByteMs, totalMs, bytes, plants }) => ({
    reader,
    'idle RSS, MB': idleMb,
    'peak RSS, MB': peakMb,
    'growth, MB': Number((peakMb - idleMb).toFixed(1)),
    'goal, MB': `< ${GROWTH_GOAL_MB}`,
    'first byte, ms': Math.round(firstByteMs),
    'total, ms': Math.round(totalMs),
    'answer, MB': toMb(bytes),
    plants,
  })),
)
const isReached = runs.every(({ plants, peakMb, idleMb }) => plants === PLANTS && peakMb - idleMb < GROWTH_GOAL_MB)
console.log(isReached ? 'The goal is reached.' : 'The goal is missed.')
process.exitCode = isReached ? 0 : 1

/** Makes the database. Returns a token of its user. */
async function makePlants(path: string): Promise<string> {
  const text = await createTokenIn(path)
  const db = new Database(path, { readwrite: true })
  db.run(
    `with recursive numbers (number) as (select 1 union all select number + 1 from numbers where number < ?1)
     insert into plants (user_id, id, name, tag)
     select users.id, number, 'Monstera deliciosa ' || number, 'evergreen' from numbers, users`,
    [PLANTS],
  )
  db.run('pragma wal_checkpoint(truncate)')
  db.close(true)
  return text
}

/** Starts a server and lists all plants. Calls `pause` after each part with the bytes so far. */
async function measure(reader: string, pause: (bytes: number, sinceMs: number) => Promise<void>): Promise<Run> {
  const server = Bun.spawn(
    [...COMMAND, 'serve', '--listen', '127.0.0.1:0', '--database', database, '--access-log', 'off'],
    { stdout: 'pipe', stderr: 'inherit', stdin: 'ignore' },
  )
  try {
    const url = await addressOf(server.stdout)
    // The first request loads code, which is not part of a list.
    await (await fetch(`${url}/plants?limit=10`, { headers: { authorization: `Bearer ${token}` } })).text()
    await Bun.sleep(SETTLE_MS)
    const idleMb = residentMb(server.pid)
    let peakMb = idleMb
    const sampling = setInterval(() => {
      peakMb = Math.max(peakMb, residentMb(server.pid))
    }, SAMPLE_EVERY_MS)
    const list = await readList(url, pause)
    await Bun.sleep(SAMPLE_EVERY_MS)
    clearInterval(sampling)
    return { reader, idleMb, peakMb: Math.max(peakMb, residentMb(server.pid)), ...list }
  } finally {
    server.kill('SIGTERM')
    await server.exited
  }
}

/**
 * Reads a list over a bare socket. `fetch` would read ahead of a slow client. Bytes that nobody reads from this socket stay in the
 * kernel's buffers, and in the server once the buffers are full.
 */
async function readList(url: string, pause: (bytes: number, sinceMs: number) => Promise<void>) {
  const { hostname, port } = new URL(url)
  const over = Promise.withResolvers<void>()
  const startMs = performance.now()
  const chunks: Buffer[] = []
  let firstByteMs = 0
  let bytes = 0
  let isPaused = false
  await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open(socket) {
        socket.write(`GET /plants HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      },
      data(socket, chunk) {
        if (bytes === 0) firstByteMs = performance.now() - startMs
        bytes += chunk.length
        chunks.push(Buffer.from(chunk))
        if (chunk.subarray(-LAST_CHUNK.length).toString('latin1') === LAST_CHUNK) {
          over.resolve()
          socket.end()
        }
        if (isPaused) return
        isPaused = true
        socket.pause()
        void pause(bytes, performance.now() - startMs).then(() => {
          isPaused = false
          socket.resume()
        })
      },
      close: () => over.reject(new Error('the list was cut')),
      error: (_, error) => over.reject(error),
    },
  })
  await over.promise
  const totalMs = performance.now() - startMs
  return { firstByteMs, totalMs, bytes, plants: countPlants(Buffer.concat(chunks)) }
}

/** The number of plants in an answer. Throws if one is missing, doubled or out of order. */
function countPlants(answer: Buffer): number {
  const body = answer.indexOf('\r\n\r\n') + 4
  const plants: { readonly name: string }[] = JSON.parse(decodeChunks(answer.subarray(body)))
  plants.forEach(({ name }, index) => {
    if (name !== `Monstera deliciosa ${index + 1}`) throw new Error(`at ${index} there is ${name}`)
  })
  return plants.length
}

/** The content of a chunked body (RFC 9112 §7.1). */
function decodeChunks(body: Buffer): string {
  const parts: Buffer[] = []
  for (let position = 0; ; ) {
    const lineEnd = body.indexOf('\r\n', position)
    const size = Number.parseInt(body.toString('latin1', position, lineEnd), 16)
    if (size === 0) return Buffer.concat(parts).toString('utf8')
    parts.push(body.subarray(lineEnd + 2, lineEnd + 2 + size))
    position = lineEnd + 2 + size + 2
  }
}

/** The address that the server logs when it listens. Reads and drops all later output. */
async function addressOf(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const found = Promise.withResolvers<string>()
  let text = ''
  void (async () => {
    for await (const chunk of stdout) {
      text = (text + new TextDecoder().decode(chunk)).slice(-10_000)
      const address = /"address":"([^"]+)"/.exec(text)?.[1]
      if (address !== undefined) found.resolve(address)
    }
    found.reject(new Error(`the server did not listen: ${text}`))
  })()
  return found.promise
}

function residentMb(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
  return toMb(Number(kilobytes) * 1024)
}

function toMb(bytes: number): number {
  return Number((bytes / 1024 ** 2).toFixed(1))
}
