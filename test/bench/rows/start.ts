import { makeDatabase } from '../databases.ts'
import { freePort, spawnPlantstore } from '../servers.ts'
import type { Workspace } from '../workspace.ts'
import type { Row } from './row.ts'

const STARTS_MIN = 15
const STARTS_PER_ROUND = 3
const POLL_MS = 0.5
const START_TIMEOUT_MS = 20_000
const STATUS_OK = 'HTTP/1.1 200'

/** The time from the spawn to the first list. */
export const start: Row = {
  name: 'start',
  title: 'start to the first 200, on 1 000 000 plants',
  async run({ workspace, rounds, say }) {
    const { path, token } = await makeDatabase(workspace.file('start.db'), { users: 10_000, plantsPerUser: 100 })
    const count = Math.max(STARTS_MIN, rounds * STARTS_PER_ROUND)
    const startsMs: number[] = []
    for (let number = 1; number <= count; number++) {
      say(`start ${number} of ${count}`)
      startsMs.push(await timeStart(workspace, path, token))
    }
    return {
      figures: [{ name: 'plantstore', unit: 'ms', rounds: startsMs }],
      claims: [{ name: 'start to the first 200', unit: 'ms', goal: 40, floor: 100, rounds: startsMs }],
    }
  },
}

async function timeStart(workspace: Workspace, database: string, token: string): Promise<number> {
  const port = await freePort()
  const startMs = performance.now()
  const server = spawnPlantstore(workspace, database, port)
  while (!(await isAnswering(server.port, token))) {
    if (performance.now() - startMs > START_TIMEOUT_MS) throw new Error('the service did not start')
    await Bun.sleep(POLL_MS)
  }
  const durationMs = performance.now() - startMs
  await server.stop()
  return durationMs
}

/** Whether the server answers a list with 200, over a new connection. */
async function isAnswering(port: number, token: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  try {
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        data: (_, chunk) => resolve(chunk.toString('latin1', 0, STATUS_OK.length) === STATUS_OK),
        close: () => resolve(false),
      },
    })
    socket.write(
      `GET /plants?limit=20 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    )
    return await promise
  } catch {
    return false
  }
}
